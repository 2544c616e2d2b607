// Views in LMDB, and expired records by the view of activations.
import type { RangeOptions } from 'lmdb';
import type { JsonValue } from '../json.js';
import type { DatabaseName, StoredDocument, ViewKey, ViewName, ViewQuery, ViewRow } from './artifact-store.js';
import { DeferredRows, deferredWithin } from './deferred-rows.js';
import { tableOptions, textOf } from './lmdb-table.js';
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

  /** Writes a document's rows as part of a durable write, but for those that it adds to `deferred`, if that is given. */
  add(database: DatabaseName, document: StoredDocument, deferred?: Buffer[]): void {
    for (const { view, key, value } of emitRows(database, document)) {
      const row = rowKey(key, document._id);
      if (deferred !== undefined && view === deferredView) deferred.push(row);
      else {
        this.writes.note(this.table(view).put(row, value === undefined ? nothing : Buffer.from(JSON.stringify(value))));
      }
    }
  }

  /** Records that ended before `beforeMs`: findExpired. */
  expired(beforeMs: number, from: string): { ids: string[]; next: string | undefined } {
    return findExpired(this.table('activations'), beforeMs, from);
  }

  /** What keeps rows until they are put into their view; one thread has it. */
  deferredRows(): DeferredRows {
    return new DeferredRows(this.table(deferredView), this.deferredLog, this.writes);
  }

  /** Whether rows of a database's documents are not in their views yet. */
  hasDeferred(database: DatabaseName): boolean {
    return viewsOf[database].includes(deferredView) && this.deferredLog.getKeysCount({ limit: 1 }) > 0;
  }

  /** Removes a document's rows as part of a durable write; none may be deferred. */
  remove(database: DatabaseName, document: StoredDocument): void {
    for (const { view, key } of emitRows(database, document)) {
      this.writes.note(this.table(view).remove(rowKey(key, document._id)));
    }
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
      return { key, id, value: this.shown(query.view, key, id, value) };
    });
  }

  /** How many rows a view has from one key to another. */
  count({ view, startKey, endKey }: Pick<ViewQuery, 'view' | 'startKey' | 'endKey'>): number {
    const range = rangeOf(startKey, endKey);
    return this.table(view).getKeysCount(range) + this.deferredIn(view, range).length;
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

  /** Rows of a range that are not in their view yet. */
  private deferredIn(view: ViewName, { start, end }: Range): Buffer[] {
    if (view !== deferredView) return [];
    const table = this.table(view);
    return deferredWithin(this.deferredLog, start, end).filter((row) => !table.doesExist(row));
  }

  private shown(view: ViewName, key: (string | number)[], id: string, value: Uint8Array): JsonValue {
    const shared = sharesValueOf[view];
    if (shared === undefined) return JSON.parse(textOf(value)) as JsonValue;
    const [path, start] = key as [string, number];
    // Earlier releases stored the key of the row that has the value.
    const ownKey = [path.slice(0, path.indexOf('/')), start];
    const sharing: Uint8Array = value.length > 0 ? value : rowKey(ownKey, id);
    return JSON.parse(textOf(this.table(shared).get(sharing) ?? nothing)) as JsonValue;
  }

  private table(view: ViewName): Table {
    return this.tables.get(view) as Table;
  }
}

/** Records that are removed at once: those that are created meanwhile wait for a step. */
const maxRecords = 100;
const everything = rangeUnder([]);

/**
 * Ids of records that ended before `beforeMs`, a hundred at most, by their rows in view `activations`: those of the first
 * namespaces from `from` on that have any. `next` is where to go on; undefined: there are no more.
 */
function findExpired(view: Table, beforeMs: number, from: string): { ids: string[]; next: string | undefined } {
  const ids: string[] = [];
  let start = rangeUnder([from]).start;
  for (;;) {
    const [first] = view.getKeys({ start, end: everything.end, limit: 1 });
    if (first === undefined) return { ids, next: undefined };
    const namespace = String(parseRow(first as unknown as Uint8Array).key[0]);
    for (const { key, value } of view.getRange(rangeOf([namespace], [namespace, beforeMs]))) {
      const { id, key: viewKey } = parseRow(Buffer.from(key));
      const row = JSON.parse(textOf(value)) as JsonValue;
      if (hasExpired(row, Number(viewKey[1]), beforeMs)) ids.push(id);
      if (ids.length === maxRecords) return { ids, next: namespace };
    }
    start = rangeUnder([namespace]).end;
  }
}
