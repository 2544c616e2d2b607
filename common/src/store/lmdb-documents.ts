// Documents and attachments in LMDB.
import type { JsonObject } from '../json.js';
import type { DatabaseName, StoredDocument } from './artifact-store.js';
import { decodeDocument, addShared, revisionOf, sharedRowKey } from './document-codec.js';
import type { Root, Table, LmdbWrites } from './lmdb-table.js';
import { bytesAt, tableOptions, textOf } from './lmdb-table.js';
import { LmdbAttachments } from './lmdb-attachments.js';
import { LmdbViews } from './lmdb-views.js';
import { viewsOf } from './views.js';

/** Stands for a document that is kept as an attachment of this name. */
const apart = Buffer.alloc(1);
const apartName = '';
const isApart = (value: Uint8Array): boolean => value.length === apart.length && value[0] === apart[0];

/** Bytes of documents that are parsed in one step, and what the last of them has beyond: some milliseconds of work. */
const stepBytes = 512 * 1024;

/** The documents of the store in LMDB with their rows in its views, as one thread has them open. */
export class LmdbDocuments {
  readonly views: LmdbViews;
  readonly attachments: LmdbAttachments;
  private readonly tables = new Map<DatabaseName, Table>();

  constructor(
    root: Root,
    private readonly writes: LmdbWrites,
  ) {
    for (const database of Object.keys(viewsOf) as DatabaseName[]) {
      this.tables.set(database, root.openDB(database, tableOptions));
    }
    this.views = new LmdbViews(root, writes);
    this.attachments = new LmdbAttachments(root, writes);
  }

  table(database: DatabaseName): Table {
    return this.tables.get(database) as Table;
  }

  /** Whether there are no documents. */
  get isEmpty(): boolean {
    return [...this.tables.values()].every((table) => table.getKeysCount({ limit: 1 }) === 0);
  }

  has(database: DatabaseName, id: string): boolean {
    return this.table(database).doesExist(Buffer.from(id));
  }

  /** A document as it is stored; undefined if there is none. */
  read(database: DatabaseName, id: string): string | undefined {
    const value = this.table(database).getBinary(Buffer.from(id));
    return value && this.textOf(database, id, value);
  }

  /** The text of a document whose value in its table is `value`. */
  textOf(database: DatabaseName, id: string, value: Uint8Array): string {
    return textOf(isApart(value) ? this.attachments.get(database, id, apartName).bytes : value);
  }

  /** The documents behind `after`, `most` at most, and those that a step of the thread allows; whether there are no more. */
  some(database: DatabaseName, after: string | undefined, most: number): { some: StoredDocument[]; isLast: boolean } {
    const begin = after === undefined ? {} : { start: Buffer.from(after), exclusiveStart: true };
    // Read whole first: what decoding reads goes through the buffer that the range lends its values from.
    const found: { id: string; value: Buffer }[] = [];
    let bytes = 0;
    let isLast = true;
    for (const { key, value } of this.table(database).getRange({ ...begin, limit: most + 1 })) {
      isLast = found.length < most && bytes < stepBytes;
      if (!isLast) break;
      found.push({ id: textOf(key), value: Buffer.from(value) });
      bytes += isApart(value) ? stepBytes : value.length;
    }
    return { some: found.map(({ id, value }) => this.decode(database, this.textOf(database, id, value))), isLast };
  }

  /** Bytes of a document as it is stored; 0 if there is none. Nothing is copied. */
  bytesOf(database: DatabaseName, id: string): number {
    const value = this.table(database).getBinaryFast(Buffer.from(id));
    if (value === undefined) return 0;
    return isApart(value) ? this.attachments.bytesOf(database, id, apartName) : value.length;
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
   * `deferred`, if it is given. Returns the bytes of the document and its rows.
   */
  write(database: DatabaseName, document: StoredDocument, stored: string, deferred?: Buffer[]): number {
    const bytes = Buffer.from(stored);
    this.writes.note(this.table(database).put(Buffer.from(document._id), bytes));
    return bytes.length + this.views.add(database, document, deferred);
  }

  /**
   * Writes a new document as `write` does, in several commits, so that other writes need not wait for all of it; the last one
   * is made by `durable`, which is told the bytes.
   */
  async writeApart(
    database: DatabaseName,
    document: StoredDocument,
    stored: string,
    durable: (gather: () => number) => Promise<void>,
  ): Promise<void> {
    const owner = { database, id: document._id, revision: revisionOf(stored) };
    const attachments = [{ name: apartName, contentType: 'application/json', bytes: Buffer.from(stored) }];
    await this.attachments.writeAhead(owner, attachments);
    await durable(() => {
      this.writes.note(this.table(database).put(Buffer.from(document._id), apart));
      return apart.length + this.views.add(database, document) + this.attachments.replace(owner, attachments);
    });
  }

  /** Whether a document is kept as an attachment. */
  isApart(database: DatabaseName, id: string): boolean {
    const value = this.table(database).getBinaryFast(Buffer.from(id));
    return value !== undefined && isApart(value);
  }

  /**
   * Removes a document, its rows and its attachment if it is kept as one, as part of a durable write; of a record, the fields
   * that rows have are enough. Returns the bytes that they had.
   */
  remove(database: DatabaseName, document: StoredDocument): number {
    const { _id: id } = document;
    const attached = this.isApart(database, id) ? this.attachments.removeAll(database, id) : 0;
    const bytes = bytesAt(this.table(database), Buffer.from(id)) + this.views.remove(database, document);
    this.writes.note(this.table(database).remove(Buffer.from(id)));
    return bytes + attached;
  }
}
