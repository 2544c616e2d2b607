// Views in LMDB, rows that are put into them together, and expired records by the view of activations.
import type { RangeOptions } from 'lmdb';
import type { JsonObject, JsonValue } from '../json.js';
import type { DatabaseName, StoredDocument, ViewKey, ViewName, ViewQuery, ViewRow } from './artifact-store.js';
import { bytesAt, tableOptions, textOf } from './lmdb-table.js';
import type { Root, Table, LmdbWrites } from './lmdb-table.js';
import { parseRow, rangeOf, rowKey, rangeUnder } from './view-key.js';
import { emitRows, sharesValueOf, viewsOf, hasExpired } from './views.js';

/** Of rows as they are stored; the start is part of it, the end is not. */
type Range = ReturnType<typeof rangeOf>;

const nothing = Buffer.alloc(0);
/** A view whose rows, of documents that are created together, would be all over it. */
const deferredView = 'activations-by-name';

/** The views of the store in LMDB: a row is its key and the document's id (view-key.ts) → its value as JSON. */
export class LmdbViews {
  private readonly tables = new Map<ViewName, Table>();
  /** Rows of `deferredView` that are not there yet. */
  private readonly deferredLog: Table;

  constructor(
    root: Root,
    private readonly writes: LmdbWrites,
  ) {
    for (const view of Object.values(viewsOf).flat()) {
      // A view may be named as a database is.
      this.tables.set(view, root.openDB(`view ${view}`, tableOptions));
    }
    this.deferredLog = root.openDB('deferred rows', tableOptions);
  }

  /**
   * Writes a document's rows as part of a durable write, but for those that it adds to `deferred`, if that is given. Returns
   * the bytes of their values.
   */
  add(database: DatabaseName, document: StoredDocument, deferred?: Buffer[]): number {
    let bytes = 0;
    for (const { view, key, value } of emitRows(database, document)) {
      const row = rowKey(key, document._id);
      if (deferred !== undefined && view === deferredView) deferred.push(row);
      else {
        const stored = value === undefined ? nothing : Buffer.from(JSON.stringify(value));
        this.writes.note(this.table(view).put(row, stored));
        bytes += stored.length;
      }
    }
    return bytes;
  }

  /** Records that ended before `beforeMs`: findExpired. */
  expired(beforeMs: number, from: string, most: number): ExpiredRows {
    return findExpired(this.table('activations'), beforeMs, from, most);
  }

  /** What keeps rows until they are put into their view; one thread has it. */
  deferredRows(): DeferredRows {
    return new DeferredRows(this.table(deferredView), this.deferredLog, this.writes);
  }

  /** Whether rows of a database's documents are not in their views yet. */
  hasDeferred(database: DatabaseName): boolean {
    return viewsOf[database].includes(deferredView) && this.deferredLog.getKeysCount({ limit: 1 }) > 0;
  }

  /** Removes a document's rows as part of a durable write; none may be deferred. Returns the bytes that their values had. */
  remove(database: DatabaseName, document: StoredDocument): number {
    let bytes = 0;
    for (const { view, key } of emitRows(database, document)) {
      const row = rowKey(key, document._id);
      bytes += bytesAt(this.table(view), row);
      this.writes.note(this.table(view).remove(row));
    }
    return bytes;
  }

  /** A row's value as it is stored; undefined if there is no such row. */
  valueOf(view: ViewName, key: ViewKey, id: string): string | undefined {
    const value = this.table(view).get(rowKey(key, id));
    return value && textOf(value);
  }

  /** The rows that a query asks for, without documents. */
  query(query: ViewQuery): ViewRow[] {
    // Read whole first: reading a value goes through the buffer that the range lends its values from.
    return this.find(query).map(({ row, value }) => {
      const { key, id } = parseRow(row);
      return { key, id, value: JSON.parse(this.valueText(query.view, key, id, value)) as JsonValue };
    });
  }

  /** How many rows from one key to another are not in their view yet. */
  deferredCount({ view, startKey, endKey }: Pick<ViewQuery, 'view' | 'startKey' | 'endKey'>): number {
    return this.deferredIn(view, rangeOf(startKey, endKey)).length;
  }

  /** A row's value as JSON text. */
  valueText(view: ViewName, key: (string | number)[], id: string, value: Uint8Array): string {
    const shared = sharesValueOf[view];
    if (shared === undefined) return textOf(value);
    const [path, start] = key as [string, number];
    // Earlier releases stored the key of the row that has the value.
    const ownKey = [path.slice(0, path.indexOf('/')), start];
    const sharing: Uint8Array = value.length > 0 ? value : rowKey(ownKey, id);
    return textOf(this.table(shared).get(sharing) ?? nothing);
  }

  private find(query: ViewQuery): { row: Buffer; value: Buffer }[] {
    const { limit, skip = 0, descending = false, view } = query;
    const { start, end } = rangeOf(query.startKey, query.endKey);
    const deferred = this.deferredIn(view, { start, end });
    const hasAll = deferred.length === 0;
    const range: RangeOptions = descending ? { start: end, end: start, reverse: true } : { start, end };
    if (hasAll && skip > 0) range.offset = skip;
    if (limit !== undefined) range.limit = hasAll ? limit : skip + limit;
    const found: { row: Buffer; value: Buffer }[] = Array.from(this.table(view).getRange(range), ({ key, value }) => ({
      row: Buffer.from(key),
      value: Buffer.from(value),
    }));
    if (hasAll) return found;
    for (const row of deferred) found.push({ row, value: nothing });
    found.sort((one, other) => Buffer.compare(one.row, other.row) * (descending ? -1 : 1));
    return found.slice(skip, limit === undefined ? undefined : skip + limit);
  }

  /** Rows of a range that are not in their view yet, in no order. */
  deferredIn(view: ViewName, { start, end }: Range): Buffer[] {
    if (view !== deferredView) return [];
    const table = this.table(view);
    return deferredWithin(this.deferredLog, start, end).filter((row) => !table.doesExist(row));
  }

  table(view: ViewName): Table {
    return this.tables.get(view) as Table;
  }
}

const everything = rangeUnder([]);

/** Records that have expired. */
interface ExpiredRows {
  /** Their ids, with what their rows in view `activations` have of them: enough for all of their rows (emitRows). */
  records: StoredDocument[];
  /** The namespace to go on with; undefined: there are no more. */
  next: string | undefined;
}

/**
 * Records that ended before `beforeMs`, `most` of them, by their rows in view `activations`: those of the first namespaces
 * from `from` on that have any.
 */
function findExpired(view: Table, beforeMs: number, from: string, most: number): ExpiredRows {
  const records: StoredDocument[] = [];
  let start = rangeUnder([from]).start;
  for (;;) {
    const [first] = view.getKeys({ start, end: everything.end, limit: 1 });
    if (first === undefined) return { records, next: undefined };
    const namespace = String(parseRow(first as unknown as Uint8Array).key[0]);
    for (const { key, value } of view.getRange(rangeOf([namespace], [namespace, beforeMs]))) {
      const { id, key: viewKey } = parseRow(Buffer.from(key));
      const row = JSON.parse(textOf(value)) as JsonObject;
      if (hasExpired(row, Number(viewKey[1]), beforeMs)) records.push({ ...row, _id: id });
      if (records.length === most) return { records, next: namespace };
    }
    start = rangeUnder([namespace]).end;
  }
}

/** Rows that are put into their view together. */
const rowsPerMerge = 1000;
const noBytes = Buffer.alloc(0);

/** Rows that were written together, under their key in the log. */
interface Batch {
  key: Buffer;
  rows: readonly Buffer[];
}

/**
 * The rows of a view which documents that are created together have all over it. Put there with them, each would cost the
 * writing of a page or more; so they are in a log, one entry for all of them, until there are a thousand. A row is a key
 * without a value. Readers of the view look there, too (deferredWithin).
 */
class DeferredRows {
  /** Durable in the log, the oldest first; those being put into the view are the first ones. */
  private readonly batches: Batch[];
  private nextEntry = 0;
  private merging: Promise<void> | undefined;

  constructor(
    private readonly view: Table,
    private readonly log: Table,
    private readonly writes: LmdbWrites,
  ) {
    this.batches = batchesIn(log);
    const last = this.batches.at(-1);
    if (last) this.nextEntry = Number(last.key.readBigUInt64BE()) + 1;
  }

  /** Logs rows as part of a durable write; the function returned is to be called when that has succeeded. */
  add(rows: readonly Buffer[]): () => void {
    if (rows.length === 0) return () => undefined;
    const key = Buffer.alloc(8);
    key.writeBigUInt64BE(BigInt(this.nextEntry++));
    this.writes.note(this.log.put(key, encode(rows)));
    return () => {
      this.batches.push({ key, rows });
      const waiting = this.batches.reduce((total, batch) => total + batch.rows.length, 0);
      // What cannot be put there now stays in the log, and is tried again with the next.
      if (waiting >= rowsPerMerge) this.merge().catch(() => undefined);
    };
  }

  /** Resolves when what is in the log now is in the view. Rejects with StoreWriteError. */
  async merged(): Promise<void> {
    await this.idle();
    if (this.batches.length > 0) await this.merge();
  }

  /** Resolves when nothing is being put into the view. */
  async idle(): Promise<void> {
    await this.merging?.catch(() => undefined);
  }

  private merge(): Promise<void> {
    this.merging ??= this.putAll([...this.batches]).finally(() => (this.merging = undefined));
    return this.merging;
  }

  private async putAll(batches: readonly Batch[]): Promise<void> {
    // In the view's order each page is found once.
    const rows = batches.flatMap((batch) => batch.rows).sort((one, other) => Buffer.compare(one, other));
    await this.writes.durable(() => {
      for (const row of rows) this.writes.note(this.view.put(row, noBytes));
      for (const { key } of batches) this.writes.note(this.log.remove(key));
    });
    this.batches.splice(0, batches.length);
  }
}

/** The rows in the log from `start` (included) to `end` (excluded), in no order. Some may be in the view by now. */
function deferredWithin(log: Table, start: Uint8Array, end: Uint8Array): Buffer[] {
  const isWithin = (row: Buffer): boolean => Buffer.compare(row, start) >= 0 && Buffer.compare(row, end) < 0;
  return batchesIn(log).flatMap(({ rows }) => rows.filter(isWithin));
}

function batchesIn(log: Table): Batch[] {
  return Array.from(log.getRange(), ({ key, value }) => ({ key: Buffer.from(key), rows: decode(Buffer.from(value)) }));
}

/** Each row after its length in two bytes. */
function encode(rows: readonly Buffer[]): Buffer {
  const bytes = Buffer.allocUnsafe(rows.reduce((total, row) => total + 2 + row.length, 0));
  let at = 0;
  for (const row of rows) {
    at = bytes.writeUInt16BE(row.length, at);
    at += row.copy(bytes, at);
  }
  return bytes;
}

function decode(bytes: Buffer): Buffer[] {
  const rows: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUInt16BE(at);
    at += 2;
    rows.push(bytes.subarray(at, at + length));
    at += length;
  }
  return rows;
}
