// Steps of reads in LMDB, each within a budget of bytes and rows.
import type { RangeOptions } from 'lmdb';
import type { DatabaseName, DocumentShape, StoredDocument, TextQuery, ViewQuery } from './artifact-store.js';
import { entityText } from './document-codec.js';
import type { LmdbDocuments } from './lmdb-documents.js';
import type { JsonObject } from '../json.js';
import { parseRow, rangeOf } from './view-key.js';
import { endedBefore } from './views.js';

/** What one step may take. */
export interface ReadBudget {
  /** Bytes of texts and documents. */
  bytes: number;
  /** Rows that are passed over or counted. */
  rows: number;
  /** Whether a step without any text is better than one with a document beyond `bytes`. */
  isStrict: boolean;
}

/** Where the next step begins. */
export interface Position {
  /** The last row that was read; undefined at the beginning. */
  after?: Uint8Array;
  skip: number;
  /** Rows that are wanted; undefined for all. */
  limit?: number;
}

/** A step's texts, joined by commas, and where to go on. */
export interface TextStep {
  texts: Uint8Array;
  /** How many texts there are. */
  count: number;
  /** Rows that were left out as those of ended records. */
  leftOut: number;
  /** Whether all is read; `position` then has what is still to be passed over, and wanted. */
  isDone: boolean;
  position: Position;
}

/** A step's rows, and the row that the next one begins with. */
export interface CountStep {
  rows: number;
  next?: Uint8Array;
}

/** Rows that a step reads at most, those that it passes over included. */
const mostRows = 1000;

/** How texts are made. */
export interface TextMaking {
  documentText: (document: StoredDocument, as: DocumentShape) => string;
  /** Bytes of a text, in a buffer of their own or not. */
  bytesOf: (text: string) => Uint8Array;
}

/** What is known here. Records are left to the thread that knows how they are shown. */
const entitiesOnly: TextMaking = {
  documentText: (document) => entityText(document),
  bytesOf: (text) => Buffer.from(text),
};

interface Row {
  row: Buffer;
  value: Buffer;
}

/** Whether a step passes over rows by their number only, for which all rows must be in their view. */
export function skipsMany({ skip }: Position, { endedSince }: Pick<TextQuery, 'endedSince'>): boolean {
  return skip > mostRows && endedSince === undefined;
}

/** The next texts of a query. With `endedSince` each of its rows is looked at. */
export function textStep(
  documents: LmdbDocuments,
  database: DatabaseName,
  query: TextQuery,
  position: Position,
  budget: ReadBudget,
  making: TextMaking = entitiesOnly,
): TextStep {
  if (skipsMany(position, query)) return skipStep(documents, query, position, budget);
  const { rows, isLast } = nextRows(documents, query, position, budget);
  const texts: string[] = [];
  let { skip, after } = position;
  let left = position.limit ?? Infinity;
  let bytes = 0;
  let leftOut = 0;
  const stepTo = (isDone: boolean): TextStep => {
    const common = { count: texts.length, leftOut, isDone };
    return { texts: making.bytesOf(texts.join(',')), ...common, position: positionAt(after, skip, left) };
  };
  for (const { row, value } of rows) {
    if (left === 0) break;
    if (query.endedSince !== undefined && hasEnded(documents, query, { row, value })) leftOut += 1;
    else if (skip > 0) skip -= 1;
    else {
      const most = mayExceed(texts, budget) ? Infinity : budget.bytes - bytes;
      const text = most > 0 ? rowText(documents, database, query, { row, value }, most, making) : tooLong;
      if (text === tooLong) return stepTo(false);
      if (text !== undefined) {
        texts.push(text);
        bytes += text.length;
      }
      left -= 1;
    }
    after = row;
  }
  return stepTo(isLast || left === 0);
}

function hasEnded({ views }: LmdbDocuments, { view, endedSince }: TextQuery, { row, value }: Row): boolean {
  const { key, id } = parseRow(row);
  return endedBefore(JSON.parse(views.valueText(view, key, id, value)) as JsonObject, endedSince);
}

/** The next rows of a range, counted. Rows that are not in their view yet are not counted. */
export function countStep(
  documents: LmdbDocuments,
  { view, startKey, endKey }: Pick<ViewQuery, 'view' | 'startKey' | 'endKey'>,
  from: Uint8Array | undefined,
  { rows }: Pick<ReadBudget, 'rows'>,
): CountStep {
  const table = documents.views.table(view);
  const { start, end } = rangeOf(startKey, endKey);
  const range = { start: from ?? start, end };
  const [next] = table.getKeys({ ...range, offset: rows, limit: 1 });
  // getKeys lends its keys.
  if (next !== undefined) return { rows, next: Uint8Array.from(next as unknown as Uint8Array) };
  return { rows: table.getKeysCount(range) };
}

function mayExceed(texts: readonly string[], { isStrict }: ReadBudget): boolean {
  return !isStrict && texts.length === 0;
}

function positionAt(after: Uint8Array | undefined, skip: number, left: number): Position {
  return { skip, ...(after !== undefined && { after }), ...(left !== Infinity && { limit: left }) };
}

const nothing = Buffer.alloc(0);

/** Passes over rows. */
function skipStep(documents: LmdbDocuments, query: TextQuery, position: Position, budget: ReadBudget): TextStep {
  const { after, skip } = position;
  const step = Math.min(skip, budget.rows);
  // The last of the rows that are passed over. The first row of the range is `after` itself.
  const offset = after === undefined ? step - 1 : step;
  const table = documents.views.table(query.view);
  const none = { texts: nothing, count: 0, leftOut: 0 };
  const [last] = table.getKeys({ ...boundsOf(query, after), offset, limit: 1 });
  if (last === undefined) {
    const rows = table.getKeysCount(boundsOf(query, after)) - (after === undefined ? 0 : 1);
    return { ...none, isDone: true, position: { ...position, skip: skip - rows } };
  }
  const next = { ...position, after: Uint8Array.from(last as unknown as Uint8Array), skip: skip - step };
  return { ...none, isDone: false, position: next };
}

function boundsOf({ startKey, endKey, descending = false }: TextQuery, after: Uint8Array | undefined): RangeOptions {
  const { start, end } = rangeOf(startKey, endKey);
  return descending ? { start: after ?? end, end: start, reverse: true } : { start: after ?? start, end };
}

/** The next rows from a position, in their order, as far as the budget goes. */
function nextRows(
  { views }: LmdbDocuments,
  query: TextQuery,
  { after, skip, limit = Infinity }: Position,
  budget: ReadBudget,
): { rows: Row[]; isLast: boolean } {
  const isBehind = query.descending === true ? -1 : 1;
  const inOrder = (one: Uint8Array, other: Uint8Array): number => Buffer.compare(one, other) * isBehind;
  const wanted = query.endedSince === undefined ? Math.min(skip + limit, mostRows) : mostRows;
  const rows: Row[] = [];
  let bytes = 0;
  let isLast = true;
  // Read whole first: reading a document goes through the buffer that the range lends its values from.
  for (const { key, value } of views.table(query.view).getRange(boundsOf(query, after))) {
    const row = Buffer.from(key);
    if (after !== undefined && row.equals(after)) continue;
    if (rows.length >= wanted || bytes >= budget.bytes) {
      isLast = false;
      break;
    }
    rows.push({ row, value: Buffer.from(value) });
    bytes += value.length;
  }
  const range = rangeOf(query.startKey, query.endKey);
  const last = isLast ? undefined : rows.at(-1)?.row;
  const deferred = views.deferredIn(query.view, range).filter((row) => {
    return (after === undefined || inOrder(row, after) > 0) && (last === undefined || inOrder(row, last) < 0);
  });
  for (const row of deferred) rows.push({ row, value: Buffer.alloc(0) });
  if (deferred.length > 0) rows.sort((one, other) => inOrder(one.row, other.row));
  return { rows, isLast };
}

const tooLong = Symbol('a text beyond the budget');

/** A row's text; undefined if its document is not there, `tooLong` if it is not to be made here. */
function rowText(
  documents: LmdbDocuments,
  database: DatabaseName,
  { view, as }: TextQuery,
  { row, value }: Row,
  mostBytes: number,
  making: TextMaking,
): string | undefined | typeof tooLong {
  const { key, id } = parseRow(row);
  if (as === 'value') return documents.views.valueText(view, key, id, value);
  if (as !== 'entity' && making === entitiesOnly) return tooLong;
  if (documents.bytesOf(database, id) > mostBytes) return tooLong;
  const stored = documents.read(database, id);
  return stored && making.documentText(documents.decode(database, stored), as);
}
