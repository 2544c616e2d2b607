// Reads of the store in LMDB whose length callers choose: short ones at once, others in steps in a thread.
import type { DatabaseName, DocumentShape, TextQuery, ViewQuery } from './artifact-store.js';
import { TooManyRowsError } from './artifact-store.js';
import type { LmdbDocuments } from './lmdb-documents.js';
import { countStep, skipsMany, textStep } from './lmdb-texts.js';
import type { Position, ReadBudget, TextStep } from './lmdb-texts.js';
import { ReadQueue } from './read-queue.js';
import { ReadThread } from './read-thread.js';

/** What is read at once, without the thread: a millisecond of work. */
const atOnce: ReadBudget = { bytes: 64 * 1024, rows: 1000, isStrict: true };
/** Rows that one read passes over at most: 3 to 6 s of the thread. */
const mostRows = 20_000_000;
/** Rows that cost as much as a byte of text. */
const rowsPerByte = 1 / 64;

/** Lists, counts and texts of documents, for readers who have equal shares of one thread. */
export class LmdbReads {
  private readonly thread: ReadThread;
  private readonly queue = new ReadQueue();
  private closed = false;

  constructor(
    folder: string,
    private readonly documents: LmdbDocuments,
    /** Resolves when the rows of a database's documents are in their views. */
    private readonly settled: (database: DatabaseName) => Promise<void>,
  ) {
    this.thread = new ReadThread(folder);
  }

  /** ArtifactStore.texts */
  async *texts(database: DatabaseName, query: TextQuery): AsyncGenerator<Uint8Array> {
    const { skip = 0, limit, reader } = query;
    if (limit === 0) return;
    if (skip > mostRows) throw new TooManyRowsError(mostRows);
    const whole: Position = { skip, ...(limit !== undefined && { limit }) };
    if (skipsMany(whole)) await this.settled(database);
    const first = textStep(this.documents, database, query, whole, atOnce);
    if (first.texts.length > 0) yield first.texts;
    if (first.next === undefined) return;
    const end = this.queue.begin(reader);
    try {
      for (let position: Position | undefined = first.next; position !== undefined;) {
        const from: Position = position;
        const work = (): Promise<TextStep> => this.open().texts(database, query, from);
        const { texts, next } = await this.queue.step(reader, work, (step) => costOf(from, step));
        if (texts.length > 0) yield texts;
        position = next;
      }
    } finally {
      end();
    }
  }

  /** ArtifactStore.text */
  async text(database: DatabaseName, id: string, as: DocumentShape, reader: string): Promise<Uint8Array> {
    const end = this.queue.begin(reader);
    try {
      const work = (): Promise<Uint8Array> => this.open().text(database, id, as);
      return await this.queue.step(reader, work, ({ length }) => length);
    } finally {
      end();
    }
  }

  /** ArtifactStore.count */
  async count(
    database: DatabaseName,
    query: Pick<ViewQuery, 'view' | 'startKey' | 'endKey'>,
    reader: string,
  ): Promise<number> {
    const first = countStep(this.documents, query, undefined, atOnce);
    if (first.next === undefined) return first.rows + this.documents.views.deferredCount(query);
    const end = this.queue.begin(reader);
    try {
      await this.settled(database);
      let rows = 0;
      for (let from: Uint8Array | undefined, isFirst = true; isFirst || from !== undefined; isFirst = false) {
        const begin = from;
        const step = await this.queue.step(
          reader,
          () => this.open().count(query, begin),
          (one) => 1 + one.rows * rowsPerByte,
        );
        rows += step.rows;
        if (rows > mostRows) throw new TooManyRowsError(mostRows);
        from = step.next;
      }
      return rows;
    } finally {
      end();
    }
  }

  /** Ends the thread. Reads under way fail at their next step. */
  async close(): Promise<void> {
    this.closed = true;
    await this.thread.close();
  }

  private open(): ReadThread {
    if (this.closed) throw new Error('the store is closed');
    return this.thread;
  }
}

function costOf({ skip }: Position, { texts, next }: TextStep): number {
  return 1 + texts.length + (skip - (next?.skip ?? 0)) * rowsPerByte;
}
