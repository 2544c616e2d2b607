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

/**
 * Documents with revisions, views and attachments, as OpenWhisk uses CouchDB.
 *
 * A returned promise of a write resolves only once the write would survive a power loss. Reads see every
 * write whose promise has resolved. Documents returned belong to the caller. Half of a surrogate pair in a text is
 * stored as U+FFFD.
 */
export interface ArtifactStore {
  /** Throws NoDocumentError. */
  get(database: DatabaseName, id: string): Promise<StoredDocument>;
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
  /** The number of rows in the range, before skip and limit. */
  count(database: DatabaseName, query: Pick<ViewQuery, 'view' | 'startKey' | 'endKey'>): Promise<number>;
  /**
   * Removes the activation records that ended before `beforeMs` (ms since the epoch) and their rows, some at a time: with each
   * step of the iteration, which gives their number. What they took is free for others then, or by and by. Throws as other
   * writes do.
   */
  expire(beforeMs: number): AsyncIterable<number>;
  /** Throws NoDocumentError. */
  getAttachment(database: DatabaseName, id: string, name: string): Promise<Attachment>;
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
