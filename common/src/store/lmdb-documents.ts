import type { JsonObject } from '../json.js';
import type { DatabaseName, StoredDocument } from './artifact-store.js';
import { decodeDocument } from './document-codec.js';
import type { Root, Table } from './lmdb-table.js';
import { tableOptions } from './lmdb-table.js';
import { LmdbViews } from './lmdb-views.js';
import type { LmdbWrites } from './lmdb-writes.js';
import { addShared, sharedRowKey } from './shared-fields.js';
import { viewsOf } from './views.js';

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

  /** Removes a document, without attachments, and its rows as part of a durable write; false if it is not there. */
  remove(database: DatabaseName, id: string): boolean {
    const stored = this.read(database, id);
    if (stored === undefined) return false;
    this.views.remove(database, this.decode(database, stored));
    this.writes.note(this.table(database).remove(Buffer.from(id)));
    return true;
  }
}
