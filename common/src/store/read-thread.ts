import type { Attachment, DatabaseName, DocumentShape, TextQuery, ViewQuery } from './artifact-store.js';
import { DamagedDocumentError, NoDocumentError } from './artifact-store.js';
import { AskedThread } from './asked-thread.js';
import type { CountStep, Position, TextStep } from './lmdb-texts.js';

type CountQuery = Pick<ViewQuery, 'view' | 'startKey' | 'endKey'>;

/** A step of a read. */
export type ReadRequest =
  | { type: 'texts'; database: DatabaseName; query: TextQuery; position: Position; used: ArrayBuffer | undefined }
  | { type: 'count'; query: CountQuery; from: Uint8Array | undefined }
  | { type: 'text'; database: DatabaseName; id: string; as: DocumentShape; endedSince: number | undefined }
  | { type: 'attachment'; database: DatabaseName; id: string; name: string };

/** Its answer, or why there is none. */
export type ReadAnswer = { number: number } & (
  | { step: TextStep }
  | { counted: CountStep }
  | { text: Uint8Array }
  | { attachment: Attachment }
  | { problem: string; kind: 'missing' | 'damaged' | 'other' }
);

/** Its young generation. A step makes texts of a record, some MiB in rare cases. */
const maxYoungMiB = 12;

/** Reads of the store in LMDB in a thread of its own (activations/read-thread-entry.ts), which knows how the API shows records. */
export class ReadThread {
  private readonly thread: AskedThread<ReadRequest, ReadAnswer>;

  constructor(folder: string) {
    this.thread = new AskedThread({
      entry: new URL('../activations/read-thread-entry.js', import.meta.url),
      folder,
      resourceLimits: { maxYoungGenerationSizeMb: maxYoungMiB },
      onEnd: (reason) => new Error(`the database could not be read: ${reason}`),
    });
  }

  /** `last` is an earlier step whose texts are no longer used. */
  async texts(database: DatabaseName, query: TextQuery, position: Position, last?: TextStep): Promise<TextStep> {
    const used = last?.texts.buffer as ArrayBuffer | undefined;
    const answer = await this.ask({ type: 'texts', database, query, position, used }, used && [used]);
    return 'step' in answer ? answer.step : unexpected();
  }

  async count(query: CountQuery, from: Uint8Array | undefined): Promise<CountStep> {
    const answer = await this.ask({ type: 'count', query, from });
    return 'counted' in answer ? answer.counted : unexpected();
  }

  /** Rejects with NoDocumentError and DamagedDocumentError. */
  async text(
    database: DatabaseName,
    id: string,
    as: DocumentShape,
    endedSince: number | undefined,
  ): Promise<Uint8Array> {
    const answer = await this.ask({ type: 'text', database, id, as, endedSince });
    return 'text' in answer ? answer.text : unexpected();
  }

  /** Rejects with NoDocumentError. */
  async attachment(database: DatabaseName, id: string, name: string): Promise<Attachment> {
    const answer = await this.ask({ type: 'attachment', database, id, name });
    return 'attachment' in answer ? answer.attachment : unexpected();
  }

  close(): Promise<void> {
    return this.thread.close();
  }

  private async ask(request: ReadRequest, moved?: readonly ArrayBuffer[]): Promise<ReadAnswer> {
    const answer = await this.thread.ask(request, moved);
    if (!('problem' in answer)) return answer;
    if (answer.kind === 'missing') throw new NoDocumentError('id' in request ? request.id : '');
    if (answer.kind === 'damaged') throw new DamagedDocumentError('id' in request ? request.id : '');
    throw new Error(answer.problem);
  }
}

function unexpected(): never {
  throw new Error('the thread that reads has answered another request');
}
