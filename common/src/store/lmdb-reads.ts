// Reads of the store in LMDB whose length callers choose: short ones at once, others in steps in a thread.
import type { Attachment, DatabaseName, DocumentShape, TextQuery, ViewQuery } from './artifact-store.js';
import { TooManyRowsError } from './artifact-store.js';
import type { LmdbDocuments } from './lmdb-documents.js';
import { countStep, skipsMany, textStep } from './lmdb-texts.js';
import type { Position, ReadBudget, TextStep } from './lmdb-texts.js';
import { ReadQueue } from './read-queue.js';
import { ReadThread } from './read-thread.js';
import { lookedAt, partsByStart } from './views.js';

/** What is read at once, without the thread: a millisecond of work. */
const atOnce: ReadBudget = { bytes: 64 * 1024, rows: 1000, isStrict: true };
/** Rows that one read passes over at most, unless told otherwise: 3 to 6 s of the thread. */
export const mostRowsPassed = 20_000_000;
/** Rows that cost as much as a byte of text. */
const rowsPerByte = 1 / 64;
/** A row that is left out is parsed, which costs as much as passing over so many. */
const leftOutCost = 10;

type CountQuery = Pick<ViewQuery, 'view' | 'startKey' | 'endKey'>;

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
    private readonly mostRows: number,
  ) {
    this.thread = new ReadThread(folder);
  }

  /** ArtifactStore.texts */
  async *texts(database: DatabaseName, { endedSince, ...query }: TextQuery): AsyncGenerator<Uint8Array> {
    const { skip = 0, limit } = query;
    if (limit === 0) return;
    if (skip > this.mostRows) throw new TooManyRowsError(this.mostRows);
    const whole: Position = { skip, ...(limit !== undefined && { limit }) };
    if (endedSince === undefined) return void (yield* this.part(database, query, whole));
    const { younger, older } = partsByStart(query, endedSince);
    const left = younger ? yield* this.part(database, { ...query, ...younger }, whole) : whole;
    if (older === undefined || left.limit === 0) return;
    // The second part begins with its own first row, wherever the first one has ended.
    const toCome: Position = { skip: left.skip, ...(left.limit !== undefined && { limit: left.limit }) };
    yield* this.part(database, { ...query, ...older, endedSince }, toCome);
  }

  /**
   * Texts of a query, with `endedSince` of few of its rows. Returns how many rows are still to be passed over, and wanted.
   */
  private async *part(
    database: DatabaseName,
    query: TextQuery,
    whole: Position,
  ): AsyncGenerator<Uint8Array, Position, undefined> {
    const { reader, endedSince } = query;
    let position = whole;
    if (endedSince === undefined) {
      if (skipsMany(whole, query)) await this.settled(database);
      const first = textStep(this.documents, database, query, whole, atOnce);
      if (first.count > 0) yield first.texts;
      if (first.isDone) return first.position;
      position = first.position;
    } else if (this.isEmpty(query)) return whole;
    const end = this.queue.begin(reader);
    try {
      let last: TextStep | undefined;
      for (let leftOut = 0; leftOut < lookedAt;) {
        const [from, used] = [position, last];
        const work = (): Promise<TextStep> => this.open().texts(database, query, from, used);
        const step = await this.queue.step(reader, work, (done) => costOf(from, done));
        if (step.count > 0) yield step.texts;
        last = step;
        ({ position } = step);
        if (step.isDone) break;
        leftOut += step.leftOut;
      }
      return position;
    } finally {
      end();
    }
  }

  /** ArtifactStore.text */
  async text(
    database: DatabaseName,
    id: string,
    as: DocumentShape,
    reader: string,
    endedSince?: number,
  ): Promise<Uint8Array> {
    const end = this.queue.begin(reader);
    try {
      const work = (): Promise<Uint8Array> => this.open().text(database, id, as, endedSince);
      return await this.queue.step(reader, work, ({ length }) => length);
    } finally {
      end();
    }
  }

  /** ArtifactStore.count */
  async count(database: DatabaseName, query: CountQuery, reader: string, endedSince?: number): Promise<number> {
    if (endedSince === undefined) return await this.countRows(database, query, reader);
    const { younger, older } = partsByStart(query, endedSince);
    let rows = younger ? await this.countRows(database, { ...query, ...younger }, reader) : 0;
    if (older === undefined || this.isEmpty({ ...query, ...older })) return rows;
    const looked: TextQuery = { ...query, ...older, as: 'value', descending: true, endedSince, reader };
    const end = this.queue.begin(reader);
    try {
      let position: Position = { skip: 0 };
      for (let leftOut = 0; leftOut < lookedAt;) {
        const from = position;
        const work = (): Promise<TextStep> => this.open().texts(database, looked, from);
        const step = await this.queue.step(reader, work, (done) => costOf(from, done));
        rows += step.count;
        if (step.isDone) break;
        ({ position } = step);
        leftOut += step.leftOut;
      }
      return rows;
    } finally {
      end();
    }
  }

  private isEmpty(query: CountQuery): boolean {
    const { rows, next } = countStep(this.documents, query, undefined, { rows: 1 });
    return rows === 0 && next === undefined && this.documents.views.deferredCount(query) === 0;
  }

  private async countRows(database: DatabaseName, query: CountQuery, reader: string): Promise<number> {
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
        if (rows > this.mostRows) throw new TooManyRowsError(this.mostRows);
        from = step.next;
      }
      return rows;
    } finally {
      end();
    }
  }

  /** A large attachment, read in the thread. Rejects with NoDocumentError. */
  attachment(database: DatabaseName, id: string, name: string): Promise<Attachment> {
    return this.open().attachment(database, id, name);
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

function costOf({ skip }: Position, { texts, position, leftOut }: TextStep): number {
  return 1 + texts.length + (skip - position.skip + leftOut * leftOutCost) * rowsPerByte;
}
