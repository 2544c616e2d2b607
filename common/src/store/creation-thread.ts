import type { DatabaseName } from './artifact-store.js';
import { StoreWriteError } from './artifact-store.js';
import { AskedThread } from './asked-thread.js';
import type { NamespaceBytes } from './stored-bytes.js';

/** What the thread is asked for; `documents` is a JSON array. */
export type ThreadRequest =
  | { type: 'create'; database: DatabaseName; documents: string }
  | { type: 'createLarge'; database: DatabaseName; document: readonly Uint8Array<ArrayBuffer>[] }
  | { type: 'merge' }
  | { type: 'expire'; beforeMs: number; from: string; most: number };

/** Records that were removed, and the namespace where to go on; absent: there are no more. */
export interface ExpiredRecords {
  removed: number;
  next?: string;
}

/** Its answer: which documents were created, which were removed, and its counts of bytes that have changed; or why it failed. */
export type ThreadAnswer =
  | { number: number; created: boolean[]; stored: NamespaceBytes }
  | { number: number; expired: ExpiredRecords; stored: NamespaceBytes }
  | { number: number; problem: string };

/** Its young generation. A batch of documents dies at once, and takes a few MiB at most. */
const maxYoungMiB = 12;

/**
 * Creates documents of the store in LMDB in a thread of its own (creation-thread-entry.ts): activations end with a record
 * each, and encoding them, their rows and the calls of LMDB would take a tenth of the platform's thread. It is started when
 * it is first needed, and again if it ends.
 */
export class CreationThread {
  private readonly thread: AskedThread<ThreadRequest, ThreadAnswer>;

  constructor(
    folder: string,
    /** Told of the thread's counts of bytes that have changed. */
    private readonly onStored: (counts: NamespaceBytes) => void,
  ) {
    this.thread = new AskedThread({
      entry: new URL('./creation-thread-entry.js', import.meta.url),
      folder,
      resourceLimits: { maxYoungGenerationSizeMb: maxYoungMiB },
      onEnd: (reason) => new StoreWriteError(`the database could not be written: ${reason}`),
    });
  }

  /** Creates the documents of a JSON array that are not there yet; true for those it did. Resolves once they are on disk. Rejects with StoreWriteError. */
  async create(database: DatabaseName, documents: string): Promise<boolean[]> {
    const answer = await this.ask({ type: 'create', database, documents });
    return 'created' in answer ? answer.created : [];
  }

  /** Creates one document of many MiB, in several commits; its JSON comes in pieces, which the thread takes. Else as `create`. */
  async createLarge(database: DatabaseName, document: readonly Uint8Array<ArrayBuffer>[]): Promise<boolean[]> {
    const moved = document.map(({ buffer }) => buffer);
    const answer = await this.ask({ type: 'createLarge', database, document }, moved);
    return 'created' in answer ? answer.created : [];
  }

  /**
   * Removes the first records, `most` of them, from namespace `from` on that ended before `beforeMs`. Resolves once that is on
   * disk. Rejects with StoreWriteError.
   */
  async expire(beforeMs: number, from: string, most: number): Promise<ExpiredRecords> {
    const answer = await this.ask({ type: 'expire', beforeMs, from, most });
    return 'expired' in answer ? answer.expired : { removed: 0 };
  }

  /** Resolves when all rows are in their views. Rejects with StoreWriteError. */
  async merge(): Promise<void> {
    await this.ask({ type: 'merge' });
  }

  /** Ends the thread, after what it was asked for. */
  close(): Promise<void> {
    return this.thread.close();
  }

  private async ask(
    request: ThreadRequest,
    moved?: readonly ArrayBuffer[],
  ): Promise<Exclude<ThreadAnswer, { problem: string }>> {
    const answer = await this.thread.ask(request, moved);
    if ('problem' in answer) throw new StoreWriteError(answer.problem);
    this.onStored(answer.stored);
    return answer;
  }
}
