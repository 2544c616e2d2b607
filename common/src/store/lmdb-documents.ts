// Documents and attachments in LMDB.
import type { JsonObject } from '../json.js';
import type { DatabaseName, StoredDocument, Attachment, NamedAttachment } from './artifact-store.js';
import { decodeDocument, addShared, sharedRowKey } from './document-codec.js';
import type { Root, Table, LmdbWrites } from './lmdb-table.js';
import { tableOptions } from './lmdb-table.js';
import { LmdbViews } from './lmdb-views.js';
import { viewsOf } from './views.js';
import { NoDocumentError } from './artifact-store.js';
import { rangeUnder, rowKey } from './view-key.js';

/** The documents of the store in LMDB with their rows in its views, as one thread has them open. */
export class LmdbDocuments {
  readonly views: LmdbViews;
  private readonly tables = new Map<DatabaseName, Table>();

  constructor(
    root: Root,
    private readonly writes: LmdbWrites,
  ) {
    for (const database of Object.keys(viewsOf) as DatabaseName[]) {
      this.tables.set(database, root.openDB(database, tableOptions));
    }
    this.views = new LmdbViews(root, writes);
  }

  table(database: DatabaseName): Table {
    return this.tables.get(database) as Table;
  }

  has(database: DatabaseName, id: string): boolean {
    return this.table(database).doesExist(Buffer.from(id));
  }

  /** A document as it is stored; undefined if there is none. */
  read(database: DatabaseName, id: string): string | undefined {
    return this.table(database).getBinary(Buffer.from(id))?.toString('utf8');
  }

  /** Bytes of a document as it is stored; 0 if there is none. Nothing is copied. */
  bytesOf(database: DatabaseName, id: string): number {
    return this.table(database).getBinaryFast(Buffer.from(id))?.length ?? 0;
  }

  /** A stored document with what its row has of it. */
  decode(database: DatabaseName, stored: string): StoredDocument {
    const document = decodeDocument(stored);
    const key = sharedRowKey(database, document);
    const row = key && this.views.valueOf('activations', key, document._id);
    if (row) addShared(document, JSON.parse(row) as JsonObject);
    return document;
  }

  /**
   * Writes a document and its rows as part of a durable write. Rows that need not be in their views at once are added to
   * `deferred`, if it is given.
   */
  write(database: DatabaseName, document: StoredDocument, stored: string, deferred?: Buffer[]): void {
    this.writes.note(this.table(database).put(Buffer.from(document._id), Buffer.from(stored)));
    this.views.add(database, document, deferred);
  }

  /** Removes a record and its rows as part of a durable write. Its fields that rows have are given. */
  removeRecord(record: StoredDocument): void {
    this.views.remove('activations', record);
    this.writes.note(this.table('activations').remove(Buffer.from(record._id)));
  }
}

/** Attachments are cut into pieces, as LMDB looks for one stretch of free pages for each value. */
const pieceBytes = 1024 * 1024;

interface Description {
  contentType: string;
  bytes: number;
}

/** The attachments of an environment. */
export const openAttachments = (root: Root, writes: LmdbWrites): LmdbAttachments =>
  new LmdbAttachments(root.openDB('attachments', tableOptions), writes);

/** Attachments: [database, id, name] → its description, [database, id, name, 0...] → its pieces. */
export class LmdbAttachments {
  constructor(
    private readonly table: Table,
    private readonly writes: LmdbWrites,
  ) {}

  /** Gives a document these attachments in place of those that it had, as part of a durable write. */
  replace(database: DatabaseName, id: string, attachments: readonly NamedAttachment[]): void {
    this.removeAll(database, id);
    for (const { name, contentType, bytes } of attachments) {
      const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const description: Description = { contentType, bytes: source.length };
      this.note(rowKey([database, id, name], ''), Buffer.from(JSON.stringify(description)));
      for (let piece = 0; piece * pieceBytes < source.length; piece++) {
        const part = source.subarray(piece * pieceBytes, (piece + 1) * pieceBytes);
        this.note(rowKey([database, id, name, piece], ''), part);
      }
    }
  }

  /** The size of an attachment, bytes. Throws NoDocumentError. */
  bytesOf(database: DatabaseName, id: string, name: string): number {
    return this.described(database, id, name).bytes;
  }

  /** An attachment, in a buffer of its own. Throws NoDocumentError. */
  get(database: DatabaseName, id: string, name: string): Attachment {
    const description = this.described(database, id, name);
    const bytes = Buffer.allocUnsafeSlow(description.bytes);
    let at = 0;
    for (let piece = 0; at < bytes.length; piece++) {
      const part = this.table.getBinary(rowKey([database, id, name, piece], ''));
      if (!part) throw new Error(`attachment '${name}' of '${id}' is incomplete`);
      bytes.set(part, at);
      at += part.length;
    }
    return { contentType: description.contentType, bytes };
  }

  private described(database: DatabaseName, id: string, name: string): Description {
    const described = this.table.getBinary(rowKey([database, id, name], ''));
    if (!described) throw new NoDocumentError(`${id}/${name}`);
    return JSON.parse(described.toString('utf8')) as Description;
  }

  /** Removes a document's attachments, as part of a durable write. */
  removeAll(database: DatabaseName, id: string): void {
    for (const row of this.table.getKeys(rangeUnder([database, id]))) this.writes.note(this.table.remove(row));
  }

  private note(key: Buffer, value: Uint8Array): void {
    this.writes.note(this.table.put(key, value));
  }
}
