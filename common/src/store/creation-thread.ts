import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { DatabaseName, StoredDocument } from './artifact-store.js';
import { StoreWriteError } from './artifact-store.js';

/** What the thread is asked for; `documents` is a JSON array. */
export type ThreadRequest =
  | { number: number; type: 'create'; database: DatabaseName; documents: string }
  | { number: number; type: 'merge' }
  | { number: number; type: 'expire'; beforeMs: number; from: string };

/** Records that were removed, and the namespace where to go on; absent: there are no more. */
export interface ExpiredRecords {
  removed: number;
  next?: string;
}

/** Its answer: which documents were created, which were removed, or why it failed. */
export type ThreadAnswer =
  | { number: number; created: boolean[] }
  | { number: number; expired: ExpiredRecords }
  | { number: number; problem: string };

/** Its young generation. A batch of documents dies at once, and takes a few MiB at most. */
const maxYoungMiB = 12;

interface Asked {
  resolve: (answer: Exclude<ThreadAnswer, { problem: string }>) => void;
  reject: (error: Error) => void;
}

/**
 * Creates documents of the store in LMDB in a thread of its own (creation-thread-entry.ts): activations end with a record
 * each, and encoding them, their rows and the calls of LMDB would take a tenth of the platform's thread. It is started when
 * it is first needed, and again if it ends.
 */
export class CreationThread {
  private readonly asked = new Map<number, Asked>();
  private worker: Worker | undefined;
  private asks = 0;

  constructor(private readonly folder: string) {}

  /** Creates documents that are not there yet; true for those it did. Resolves once they are on disk. Rejects with StoreWriteError. */
  async create(database: DatabaseName, documents: readonly StoredDocument[]): Promise<boolean[]> {
    const request = { number: ++this.asks, type: 'create', database, documents: JSON.stringify(documents) } as const;
    const answer = await this.ask(request);
    return 'created' in answer ? answer.created : [];
  }

  /** Removes the first records from namespace `from` on that ended before `beforeMs`. Resolves once that is on disk. Rejects with StoreWriteError. */
  async expire(beforeMs: number, from: string): Promise<ExpiredRecords> {
    const answer = await this.ask({ number: ++this.asks, type: 'expire', beforeMs, from });
    return 'expired' in answer ? answer.expired : { removed: 0 };
  }

  /** Resolves when all rows are in their views. Rejects with StoreWriteError. */
  async merge(): Promise<void> {
    await this.ask({ number: ++this.asks, type: 'merge' });
  }

  /** Ends the thread, after what it was asked for. */
  async close(): Promise<void> {
    const { worker } = this;
    if (worker === undefined) return;
    worker.ref();
    worker.postMessage(undefined);
    await once(worker, 'exit');
  }

  private ask(request: ThreadRequest): Promise<Exclude<ThreadAnswer, { problem: string }>> {
    const worker = (this.worker ??= this.start());
    return new Promise((resolve, reject) => {
      this.asked.set(request.number, { resolve, reject });
      worker.ref();
      worker.postMessage(request);
    });
  }

  private start(): Worker {
    const worker = new Worker(new URL('./creation-thread-entry.js', import.meta.url), {
      workerData: this.folder,
      // The process's own may be for its main program only.
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: maxYoungMiB },
    });
    let failure: unknown;
    worker.on('message', (answer: ThreadAnswer) => this.take(worker, answer));
    worker.once('error', (error) => (failure = error));
    worker.once('exit', (code) => {
      this.worker = undefined;
      const reason = failure instanceof Error ? failure.message : `its thread ended with ${code}`;
      for (const { reject } of this.asked.values()) reject(couldNotWrite(reason));
      this.asked.clear();
    });
    return worker;
  }

  private take(worker: Worker, answer: ThreadAnswer): void {
    const asked = this.asked.get(answer.number);
    this.asked.delete(answer.number);
    // Alone it does not keep the process from its end.
    if (this.asked.size === 0) worker.unref();
    if ('problem' in answer) asked?.reject(new StoreWriteError(answer.problem));
    else asked?.resolve(answer);
  }
}

function couldNotWrite(reason: string): StoreWriteError {
  return new StoreWriteError(`the database could not be written: ${reason}`);
}
