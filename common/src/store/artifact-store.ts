import type { JsonObject, JsonValue } from '../json.js';

/** OpenWhisk's three databases, and one for what OpenWhisk has no documents for. */
export type DatabaseName = 'subjects' | 'whisks' | 'activations' | 'gpu';

/** A document: `_id`, `_rev` once stored, and any fields. */
export interface StoredDocument extends JsonObject {
  _id: string;
}

/** A view by its design document's job and name; views.ts defines what each emits. */
export type ViewName =
  | 'identities'
  | 'blocked-namespaces'
  | 'actions'
  | 'packages'
  | 'packages-public'
  | 'rules'
  | 'triggers'
  | 'activations'
  | 'activations-by-name'
  | 'apis';

/** A view key: strings sort after numbers, element by element, as in CouchDB. */
export type ViewKey = readonly (string | number)[];

/** A range over a view; both ends are included. */
export interface ViewQuery {
  view: ViewName;
  startKey: ViewKey;
  endKey: ViewKey;
  /** Newest first when true: rows come from endKey down to startKey. */
  descending?: boolean;
  skip?: number;
  /** Rows at most. Default: no limit. */
  limit?: number;
  includeDocs?: boolean;
}

/** A row of a view; `doc` only where it was asked for. */
export interface ViewRow {
  id: string;
  key: ViewKey;
  value: JsonValue;
  doc?: StoredDocument;
}

/** How documents are given as JSON texts: records as the API shows them or parts of them, or entities without internal fields. */
export type DocumentShape = 'activation' | 'logs' | 'result' | 'entity';

/** Rows of a view as JSON texts: their values, or their documents. */
export interface TextQuery extends Omit<ViewQuery, 'includeDocs'> {
  as: 'value' | DocumentShape;
  /** Leaves out activation records that ended before, ms since the epoch; for descending queries. See `lookedAt` of views.ts. */
  endedSince?: number;
  /** On whose behalf they are read. Readers have equal shares of the time that reads take. */
  reader: string;
}

/** Bytes beside a document. */
export interface Attachment {
  contentType: string;
  bytes: Uint8Array;
}

/** An attachment to be stored. */
export interface NamedAttachment extends Attachment {
  name: string;
}

/** Thrown by get and delete, and by attachment reads. */
export class NoDocumentError extends Error {
  override name = 'NoDocumentError';
  constructor(readonly id: string) {
    super(`no document '${id}'`);
  }
}

/** Thrown by put and delete when the revision given is not the stored one. */
export class DocumentConflictError extends Error {
  override name = 'DocumentConflictError';
  constructor(readonly id: string) {
    super(`document '${id}' was changed meanwhile`);
  }
}

/** Thrown by reads of texts of a document that is not what it should be. */
export class DamagedDocumentError extends Error {
  override name = 'DamagedDocumentError';
  constructor(
    readonly id: string,
    options?: ErrorOptions,
  ) {
    super(`document '${id}' is damaged`, options);
  }
}

/** Thrown by a `get` with a bound. */
export class LargeDocumentError extends Error {
  override name = 'LargeDocumentError';
  constructor(readonly id: string) {
    super(`document '${id}' is larger than asked for`);
  }
}

/** Thrown by reads of texts and counts of a reader who has as many under way as it may. */
export class ReadsFullError extends Error {
  override name = 'ReadsFullError';
  constructor(
    readonly count: number,
    readonly allowed: number,
  ) {
    super(`${count} reads are under way, ${allowed} may be`);
  }
}

/** Thrown by reads that would pass over more rows than they may. */
export class TooManyRowsError extends Error {
  override name = 'TooManyRowsError';
  constructor(readonly allowed: number) {
    super(`more than ${allowed} rows would have to be counted or skipped`);
  }
}

/**
 * Documents with revisions, views and attachments, as OpenWhisk uses CouchDB.
 *
 * A returned promise of a write resolves only once the write would survive a power loss. Reads see every
 * write whose promise has resolved. Documents returned belong to the caller. Half of a surrogate pair in a text is
 * stored as U+FFFD.
 */
export interface ArtifactStore {
  /**
   * Throws NoDocumentError, and LargeDocumentError where the store knows without reading it that the document has more than
   * `mostBytes`.
   */
  get(database: DatabaseName, id: string, mostBytes?: number): Promise<StoredDocument>;
  /**
   * Creates (no `_rev`) or replaces (`_rev` of the stored one); resolves with the new revision.
   * Throws DocumentConflictError. With `attachments` the document has these and no others from then on, both or
   * neither being stored; without, it keeps what it had.
   */
  put(database: DatabaseName, document: StoredDocument, attachments?: readonly NamedAttachment[]): Promise<string>;
  /**
   * Creates many documents at once in one durable batch; one that is there already is left as it is.
   * Resolves, in order, with whether each was created now.
   */
  createMany(database: DatabaseName, documents: readonly StoredDocument[]): Promise<boolean[]>;
  /** Removes the document and its attachments. Throws NoDocumentError, DocumentConflictError. */
  delete(database: DatabaseName, id: string, revision: string): Promise<void>;
  /** Documents by id (in the order of its UTF-8 bytes), those behind `after`, `limit` of them at most. */
  list(database: DatabaseName, options: { after?: string; limit: number }): Promise<StoredDocument[]>;
  query(database: DatabaseName, query: ViewQuery): Promise<ViewRow[]>;
  /**
   * The rows of a query as JSON texts, some at a time: several texts are joined by commas. Rows without a document are left
   * out. Neither is the whole list in memory, nor the caller's thread held up by it. The bytes may be used until the next ones
   * are asked for, which may come in their place. Throws ReadsFullError, TooManyRowsError, DamagedDocumentError.
   */
  texts(database: DatabaseName, query: TextQuery): AsyncIterable<Uint8Array>;
  /**
   * A document as JSON text; with `endedSince`, none of a record that ended before. Throws NoDocumentError, ReadsFullError,
   * DamagedDocumentError.
   */
  text(database: DatabaseName, id: string, as: DocumentShape, reader: string, endedSince?: number): Promise<Uint8Array>;
  /**
   * The number of rows in the range, before skip and limit. Counts for a `reader` throw ReadsFullError, and all of them
   * TooManyRowsError.
   */
  count(
    database: DatabaseName,
    query: Pick<ViewQuery, 'view' | 'startKey' | 'endKey'> & { reader?: string; endedSince?: number },
  ): Promise<number>;
  /**
   * Removes the activation records that ended before `beforeMs` (ms since the epoch) and their rows, some at a time: with each
   * step of the iteration, which gives their number. What they took is free for others then, or by and by. Throws as other
   * writes do.
   */
  expire(beforeMs: number): AsyncIterable<number>;
  /** Throws NoDocumentError. */
  getAttachment(database: DatabaseName, id: string, name: string): Promise<Attachment>;
  /** Whether its disk has too little space for new entities and activations. Absent: the store cannot tell. */
  readonly isFull?: boolean;
  /**
   * Bytes that a namespace has stored: documents that belong to it (namespaceOfDocument) with attachments and rows of lists.
   * Answers at once. A store elsewhere answers as of some seconds ago, and undefined until it knows.
   */
  storedBytes(namespace: string): number | undefined;
  /** The namespaces with their bytes; of a store elsewhere those that it was asked for. */
  storedNamespaces(): Iterable<[namespace: string, bytes: number]>;
  close(): Promise<void>;
}

/** Thrown when a store cannot be opened: another process has it, it is damaged, or the folder is not usable. */
export class StoreOpenError extends Error {
  override name = 'StoreOpenError';
}

/** Rejected by a write that did not become durable (disk full, input or output error), and after close. */
export class StoreWriteError extends Error {
  override name = 'StoreWriteError';
}

/** The disk of the store has too little space for the write; nothing was written. */
export class StoreFullError extends StoreWriteError {
  override name = 'StoreFullError';
  constructor() {
    super('the disk of the store has too little free space');
  }
}

/**
 * The store refuses what it was given, and would do so again; of several documents, at least one. Others of them may have
 * been stored.
 */
export class StoreRefusedError extends StoreWriteError {
  override name = 'StoreRefusedError';
  constructor(
    message: string,
    /** For its size. */
    readonly tooLarge: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
