import type { RangeOptions, RootDatabase } from 'lmdb';
import { open } from 'lmdb';
import type { JsonObject } from '../json.js';
import { isJsonObject } from '../json.js';
import type { ProcessIdentity } from '../system/process-identity.js';
import { isRunning, thisProcess } from '../system/process-identity.js';
import type {
  ArtifactStore,
  Attachment,
  DatabaseName,
  NamedAttachment,
  StoredDocument,
  ViewKey,
  ViewName,
  ViewQuery,
  ViewRow,
} from './artifact-store.js';
import { DocumentConflictError, NoDocumentError } from './artifact-store.js';
import { decodeDocument, encodeDocument, encodeNewDocument, revisionOf } from './document-codec.js';
import { systemDisk } from '../system/disk.js';
import { KeyQueue } from './key-queue.js';
import { LmdbAttachments } from './lmdb-attachments.js';
import { checkLmdbFile } from './lmdb-check.js';
import { tableOptions, textOf } from './lmdb-table.js';
import type { Table } from './lmdb-table.js';
import { LmdbViews } from './lmdb-views.js';
import { LmdbWrites } from './lmdb-writes.js';
import { StoreOpenError } from './store-error.js';
import { addShared, sharedRowKey, withoutShared } from './shared-fields.js';
import { viewsOf } from './views.js';

const ownerKey = Buffer.from('owner');

/**
 * The store inside one process, in LMDB (one file, memory-mapped, copy on write). One process at a time has a
 * folder, so checks against what is stored are made in memory, one write a document at a time.
 *
 * Throws StoreOpenError.
 */
export async function openLmdbStore(folder: string): Promise<ArtifactStore> {
  let root: RootDatabase<Uint8Array, Uint8Array> | undefined;
  try {
    await systemDisk.makeFolder(folder);
    await checkLmdbFile(systemDisk, folder);
    // Without overlappingSync a commit is reported once it is on disk, which is what put and createMany promise.
    root = open({ path: folder, noSubdir: false, overlappingSync: false, maxDbs: 32, ...tableOptions });
    return new LmdbStore(root, claim(root, folder));
  } catch (error) {
    await root?.close();
    if (error instanceof StoreOpenError) throw error;
    const message = `the database in '${folder}' cannot be opened: ${(error as Error).message}`;
    throw new StoreOpenError(message, { cause: error });
  }
}

/** Notes this process as the folder's only user. */
function claim(root: RootDatabase<Uint8Array, Uint8Array>, folder: string): Table {
  const meta: Table = root.openDB('meta', tableOptions);
  meta.transactionSync(() => {
    const owner = meta.get(ownerKey);
    const other = owner && (JSON.parse(Buffer.from(owner).toString('utf8')) as ProcessIdentity);
    if (other && isRunning(other)) {
      throw new StoreOpenError(`the database in '${folder}' is in use by process ${other.pid}`);
    }
    meta.putSync(ownerKey, Buffer.from(JSON.stringify(thisProcess())));
  });
  return meta;
}

class LmdbStore implements ArtifactStore {
  private readonly documents = new Map<DatabaseName, Table>();
  private readonly views: LmdbViews;
  private readonly attachments: LmdbAttachments;
  private readonly writes = new LmdbWrites();
  /** Holds `database id` while a write of it is not yet durable. */
  private readonly queue = new KeyQueue();
  private closed = false;

  constructor(
    private readonly root: RootDatabase<Uint8Array, Uint8Array>,
    private readonly meta: Table,
  ) {
    for (const database of Object.keys(viewsOf) as DatabaseName[]) {
      this.documents.set(database, root.openDB(database, tableOptions));
    }
    this.views = new LmdbViews(root, this.writes);
    this.attachments = new LmdbAttachments(root.openDB('attachments', tableOptions), this.writes);
  }

  async get(database: DatabaseName, id: string): Promise<StoredDocument> {
    const stored = this.read(database, id);
    if (stored === undefined) throw new NoDocumentError(id);
    return this.decode(database, stored);
  }

  async put(
    database: DatabaseName,
    document: StoredDocument,
    attachments?: readonly NamedAttachment[],
  ): Promise<string> {
    return await this.queue.run(`${database} ${document._id}`, async () => {
      const before = this.read(database, document._id);
      const previous = before === undefined ? undefined : revisionOf(before);
      if (document._rev !== previous) throw new DocumentConflictError(document._id);
      const { revision, stored } = encodeDocument(withoutShared(database, document), previous);
      if (before !== undefined) await this.views.settled(database);
      await this.writes.durable(() => {
        if (before !== undefined) this.views.remove(database, this.decode(database, before));
        this.write(database, document, stored);
        if (attachments) this.attachments.replace(database, document._id, attachments);
      });
      return revision;
    });
  }

  async createMany(database: DatabaseName, documents: readonly StoredDocument[]): Promise<boolean[]> {
    const created = new Array<boolean>(documents.length).fill(false);
    const keys: string[] = [];
    const later: number[] = [];
    const table = this.table(database);
    const taken = new Set<string>();
    const rows: Buffer[] = [];
    let onDurable: (() => void) | undefined;
    const written = this.writes.durable(() => {
      for (const [index, document] of documents.entries()) {
        const key = `${database} ${document._id}`;
        if (this.queue.isBusy(key) || taken.has(key)) {
          later.push(index);
        } else if (!table.doesExist(Buffer.from(document._id))) {
          this.write(database, document, encodeNewDocument(withoutShared(database, document)), rows);
          created[index] = true;
          taken.add(key);
          keys.push(key);
        }
      }
      onDurable = this.views.defer(rows);
    });
    const commit = written.then(() => onDurable?.());
    this.queue.holdAll(
      keys,
      commit.catch(() => undefined),
    );
    await commit;
    // Those that somebody else was writing: again, when that is done.
    for (const index of later) created[index] = await this.createOne(database, documents[index] as StoredDocument);
    return created;
  }

  async delete(database: DatabaseName, id: string, revision: string): Promise<void> {
    await this.queue.run(`${database} ${id}`, async () => {
      const before = this.read(database, id);
      if (before === undefined) throw new NoDocumentError(id);
      if (revisionOf(before) !== revision) throw new DocumentConflictError(id);
      await this.views.settled(database);
      await this.writes.durable(() => {
        this.views.remove(database, this.decode(database, before));
        this.writes.note(this.table(database).remove(Buffer.from(id)));
        this.attachments.removeAll(database, id);
      });
    });
  }

  async list(database: DatabaseName, { after, limit }: { after?: string; limit: number }): Promise<StoredDocument[]> {
    if (limit === 0) return [];
    const range: RangeOptions = { limit };
    if (after !== undefined) Object.assign(range, { start: Buffer.from(after), exclusiveStart: true });
    // Read whole first: what decoding reads goes through the buffer that the range lends its values from.
    const found = Array.from(this.table(database).getRange(range), ({ value }) => textOf(value));
    return found.map((stored) => this.decode(database, stored));
  }

  async query(database: DatabaseName, query: ViewQuery): Promise<ViewRow[]> {
    if (query.limit === 0) return [];
    this.checkOpen();
    const rows = this.views.query(query);
    if (query.includeDocs) for (const row of rows) this.addDocument(database, row);
    return rows;
  }

  async count(_database: DatabaseName, query: { view: ViewName; startKey: ViewKey; endKey: ViewKey }): Promise<number> {
    this.checkOpen();
    return this.views.count(query);
  }

  async getAttachment(database: DatabaseName, id: string, name: string): Promise<Attachment> {
    this.checkOpen();
    return this.attachments.get(database, id, name);
  }

  async close(): Promise<void> {
    if (this.writes.refused) return;
    this.writes.refuse();
    await this.queue.idle();
    await this.views.idle();
    this.closed = true;
    await this.meta.remove(ownerKey);
    await this.root.close();
  }

  private async createOne(database: DatabaseName, document: StoredDocument): Promise<boolean> {
    return await this.queue.run(`${database} ${document._id}`, async () => {
      if (this.table(database).doesExist(Buffer.from(document._id))) return false;
      const stored = encodeNewDocument(withoutShared(database, document));
      await this.writes.durable(() => this.write(database, document, stored));
      return true;
    });
  }

  private checkOpen(): void {
    if (this.closed) throw new Error('the store is closed');
  }

  private table(database: DatabaseName): Table {
    this.checkOpen();
    return this.documents.get(database) as Table;
  }

  private read(database: DatabaseName, id: string): string | undefined {
    const stored = this.table(database).getBinary(Buffer.from(id));
    return stored?.toString('utf8');
  }

  private decode(database: DatabaseName, stored: string): StoredDocument {
    const document = decodeDocument(stored);
    const key = sharedRowKey(database, document);
    const row = key && this.views.valueOf('activations', key, document._id);
    if (row) addShared(document, JSON.parse(row) as JsonObject);
    return document;
  }

  /** Rows that need not be in their views at once are added to `deferred`, if it is given. */
  private write(database: DatabaseName, document: StoredDocument, stored: string, deferred?: Buffer[]): void {
    this.writes.note(this.table(database).put(Buffer.from(document._id), Buffer.from(stored)));
    this.views.add(database, document, deferred);
  }

  /** The row's document, or the one that its value names (CouchDB's linked documents). */
  private addDocument(database: DatabaseName, row: ViewRow): void {
    const linked = isJsonObject(row.value) ? row.value._id : undefined;
    const stored = this.read(database, typeof linked === 'string' ? linked : row.id);
    if (stored !== undefined) row.doc = this.decode(database, stored);
  }
}
