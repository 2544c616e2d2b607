import { isJsonObject, withoutHalfPairsIn } from '../json.js';
import type { ProcessIdentity } from '../system/process-identity.js';
import { isRunning, thisProcess } from '../system/process-identity.js';
import type {
  ArtifactStore,
  Attachment,
  DatabaseName,
  NamedAttachment,
  StoredDocument,
  TextQuery,
  ViewQuery,
  ViewRow,
} from './artifact-store.js';
import {
  DocumentConflictError,
  LargeDocumentError,
  NoDocumentError,
  StoreFullError,
  StoreOpenError,
  StoreWriteError,
} from './artifact-store.js';
import { CreationThread } from './creation-thread.js';
import type { ExpiredRecords } from './creation-thread.js';
import { encodeDocument, encodeNewDocument, revisionOf, withoutShared } from './document-codec.js';
import { othersFirst, systemClock } from '../system/clock.js';
import { nextPiece, pieceBytes } from '../system/pieces.js';
import { systemDisk } from '../system/disk.js';
import { allocateStart, openSpaceAhead } from '../system/space-ahead.js';
import type { SpaceAhead } from '../system/space-ahead.js';
import { KeyQueue } from './key-queue.js';
import type { LmdbAttachments } from './lmdb-attachments.js';
import { LmdbDocuments } from './lmdb-documents.js';
import { LmdbReads, mostRowsPassed } from './lmdb-reads.js';
import type { NoteBytes } from './lmdb-sizes.js';
import { documentCost, expiryCost, leaving, mergeCost, StoreRoom } from './store-room.js';
import { openRoot, tableOptions, LmdbWrites } from './lmdb-table.js';
import type { Root, Table } from './lmdb-table.js';
import type { Disk, DiskFile } from '../system/disk.js';
import { StepSize } from './step-size.js';
import { StoredByNamespace } from './stored-by-namespace.js';
import { namespaceOfDocument } from './stored-bytes.js';

/** Records that are removed at once: those that are created meanwhile wait for a step. */
const expirySteps = { least: 100, most: 1000, growsBelowMs: 20, shrinksAboveMs: 40 };

/** Larger attachments are read in the thread. */
const mostReadAtOnce = 1024 * 1024;

/** The library's file of readers takes 8272 bytes for its 126 readers. */
const lockFileBytes = 16_384;

const ownerKey = Buffer.from('owner');

/** Options of the store in LMDB. */
export interface LmdbStoreOptions {
  /** Told in a line if space cannot be allocated ahead of the file, or stored data cannot be counted. */
  onWarning?: (line: string) => void;
  /** Counts and lists that would pass over more rows are refused; default 20 million. */
  mostRows?: number;
}

/**
 * The store inside one process, in LMDB (one file, memory-mapped, copy on write). One process at a time has a
 * folder, so checks against what is stored are made in memory, one write a document at a time.
 *
 * Throws StoreOpenError.
 */
export async function openLmdbStore(
  folder: string,
  { onWarning = () => undefined, mostRows = mostRowsPassed }: LmdbStoreOptions = {},
): Promise<ArtifactStore> {
  let root: Root | undefined;
  let space: SpaceAhead | undefined;
  try {
    await systemDisk.makeFolder(folder);
    await checkLmdbFile(systemDisk, folder);
    // The library maps it with a hole, whose first use would end the process once data.mdb has the rest of the disk.
    if (!(await allocateStart(`${folder}/lock.mdb`, lockFileBytes))) throw new StoreFullError();
    space = await openSpaceAhead(`${folder}/data.mdb`, onWarning);
    const room = await StoreRoom.open(space);
    root = openRoot(folder);
    const store = new LmdbStore(folder, root, claim(root, folder), room, { mostRows, onWarning });
    await store.removeUnfinished();
    return store;
  } catch (error) {
    await root?.close();
    await space?.close();
    if (error instanceof StoreOpenError) throw error;
    const message = `the database in '${folder}' cannot be opened: ${(error as Error).message}`;
    throw new StoreOpenError(message, { cause: error });
  }
}

/** Notes this process as the folder's only user. */
function claim(root: Root, folder: string): Table {
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
  private readonly documents: LmdbDocuments;
  private readonly attachments: LmdbAttachments;
  private readonly writes = new LmdbWrites();
  private readonly creation: CreationThread;
  /** Creates large records, for which no other is to wait. */
  private readonly largeCreation: CreationThread;
  private readonly stored: StoredByNamespace;
  private readonly reads: LmdbReads;
  /** Holds `database id` while a write of it is not yet durable. */
  private readonly queue = new KeyQueue();
  /** Holds `activations` while a stored record is removed or replaced: expiry does so in another thread, by no record's key. */
  private readonly removals = new KeyQueue();
  private closed = false;

  constructor(
    folder: string,
    private readonly root: Root,
    private readonly meta: Table,
    private readonly room: StoreRoom,
    { mostRows, onWarning }: Required<LmdbStoreOptions>,
  ) {
    this.documents = new LmdbDocuments(root, this.writes);
    this.attachments = this.documents.attachments;
    this.stored = new StoredByNamespace({
      ...{ folder, root, onWarning, writes: this.writes },
      isEmpty: this.documents.isEmpty,
      write: (bytes, work) => room.write(bytes, leaving.removal, work),
    });
    this.creation = new CreationThread(folder, (counts) => this.stored.take('records', counts));
    this.largeCreation = new CreationThread(folder, (counts) => this.stored.take('largeRecords', counts));
    this.reads = new LmdbReads(folder, this.documents, (database) => this.settled(database), mostRows);
  }

  /** Removes what a put had written when its process was killed. Rejects with StoreFullError or StoreWriteError. */
  async removeUnfinished(): Promise<void> {
    await this.room.write(documentCost(0), leaving.removal, () => this.attachments.removeUnfinished());
  }

  async get(database: DatabaseName, id: string, mostBytes = Infinity): Promise<StoredDocument> {
    this.checkOpen();
    if (mostBytes < Infinity && this.documents.bytesOf(database, id) > mostBytes) throw new LargeDocumentError(id);
    const stored = this.read(database, id);
    if (stored === undefined) throw new NoDocumentError(id);
    return this.documents.decode(database, stored);
  }

  async put(database: DatabaseName, given: StoredDocument, attachments?: readonly NamedAttachment[]): Promise<string> {
    const document = withoutHalfPairsIn(given);
    return await this.change(database, document._id, async () => {
      const before = this.read(database, document._id);
      const previous = before === undefined ? undefined : revisionOf(before);
      if (document._rev !== previous) throw new DocumentConflictError(document._id);
      const { revision, stored } = encodeDocument(withoutShared(database, document), previous);
      if (before !== undefined) await this.settled(database);
      const owner = { database, id: document._id, revision };
      const write = (note: NoteBytes): void => {
        const { _id: id } = document;
        const removed =
          before === undefined ? 0 : this.documents.remove(database, this.documents.decode(database, before));
        const written = this.documents.write(database, document, stored);
        const attached = attachments ? this.attachments.replace(owner, attachments) : 0;
        note(namespaceOfDocument(database, id), written - removed + attached);
      };
      const bytes = (attachments ?? []).reduce((sum, { bytes: { length } }) => sum + 2 * length, stored.length);
      // A document that does not grow may be part of a removal: a rule's trigger without the rule.
      const grows = attachments !== undefined || before === undefined || stored.length > before.length;
      const keep = grows ? keptBy(database) : leaving.removal;
      await this.room.write(documentCost(bytes), keep, async () => {
        await this.attachments.writeAhead(owner, attachments ?? []);
        await this.stored.durable(write);
      });
      return revision;
    });
  }

  async createMany(database: DatabaseName, documents: readonly StoredDocument[]): Promise<boolean[]> {
    if (this.writes.refused) throw new StoreWriteError('the store is closed');
    const keys = new Map<string, number>();
    const later: number[] = [];
    for (const [index, { _id: id }] of documents.entries()) {
      const key = `${database} ${id}`;
      if (this.queue.isBusy(key) || keys.has(key)) later.push(index);
      else keys.set(key, index);
    }
    const created = new Array<boolean>(documents.length).fill(false);
    if (keys.size > 0) await this.createNow(database, documents, keys, created);
    // Those that another caller was writing: again, when that is done.
    for (const index of later)
      created[index] = await this.createOne(database, withoutHalfPairsIn(documents[index] as StoredDocument));
    return created;
  }

  async delete(database: DatabaseName, id: string, revision: string): Promise<void> {
    await this.change(database, id, async () => {
      const before = this.read(database, id);
      if (before === undefined) throw new NoDocumentError(id);
      if (revisionOf(before) !== revision) throw new DocumentConflictError(id);
      await this.settled(database);
      const remove = (note: NoteBytes): void => {
        const attached = this.documents.isApart(database, id) ? 0 : this.attachments.removeAll(database, id);
        const removed = this.documents.remove(database, this.documents.decode(database, before));
        note(namespaceOfDocument(database, id), -removed - attached);
      };
      await this.room.write(documentCost(0), leaving.removal, () => this.stored.durable(remove));
    });
  }

  async list(database: DatabaseName, { after, limit }: { after?: string; limit: number }): Promise<StoredDocument[]> {
    const documents: StoredDocument[] = [];
    let last = after;
    while (documents.length < limit) {
      this.checkOpen();
      const { some, isLast } = this.documents.some(database, last, limit - documents.length);
      documents.push(...some);
      last = some.at(-1)?._id;
      if (isLast) break;
      await othersFirst(systemClock);
    }
    return documents;
  }

  async query(database: DatabaseName, query: ViewQuery): Promise<ViewRow[]> {
    if (query.limit === 0) return [];
    this.checkOpen();
    const rows = this.documents.views.query(query);
    if (query.includeDocs) for (const row of rows) this.addDocument(database, row);
    return rows;
  }

  texts(database: DatabaseName, query: TextQuery): AsyncIterable<Uint8Array> {
    this.checkOpen();
    return this.reads.texts(database, query);
  }

  async text(...asked: Parameters<ArtifactStore['text']>): Promise<Uint8Array> {
    this.checkOpen();
    return await this.reads.text(...asked);
  }

  async count(
    database: DatabaseName,
    { reader = '', endedSince, ...query }: Parameters<ArtifactStore['count']>[1],
  ): Promise<number> {
    this.checkOpen();
    return await this.reads.count(database, query, reader, endedSince);
  }

  async getAttachment(database: DatabaseName, id: string, name: string): Promise<Attachment> {
    this.checkOpen();
    return this.attachments.bytesOf(database, id, name) > mostReadAtOnce
      ? await this.reads.attachment(database, id, name)
      : this.attachments.get(database, id, name);
  }

  async *expire(beforeMs: number): AsyncIterable<number> {
    const size = new StepSize(expirySteps);
    for (let from: string | undefined = ''; from !== undefined;) {
      if (this.writes.refused) throw new StoreWriteError('the store is closed');
      const beganMs = systemClock.monotonicMs();
      const start: string = from;
      const most: number = size.most;
      const step = (): Promise<ExpiredRecords> =>
        this.removals.run('activations', () => this.creation.expire(beforeMs, start, most));
      const expired: ExpiredRecords | undefined = await this.room
        .write(expiryCost(most), leaving.removal, step)
        .catch((error: unknown) => {
          if (error instanceof StoreFullError && most > expirySteps.least) return undefined;
          throw error;
        });
      if (expired === undefined) {
        // On a full disk a smaller step may fit, and makes room.
        size.took(0, Infinity);
        continue;
      }
      const { removed, next }: ExpiredRecords = expired;
      size.took(removed, systemClock.monotonicMs() - beganMs);
      this.root.resetReadTxn();
      yield removed;
      from = next;
    }
  }

  async close(): Promise<void> {
    if (this.writes.refused) return;
    this.writes.refuse();
    await this.stored.close();
    await this.queue.idle();
    await this.creation.close();
    await this.largeCreation.close();
    this.closed = true;
    await this.reads.close();
    await this.meta.remove(ownerKey);
    await this.root.close();
    await this.room.close();
  }

  get isFull(): boolean {
    return this.room.isFull;
  }

  storedBytes(namespace: string): number {
    return this.stored.of(namespace);
  }

  storedNamespaces(): Iterable<[namespace: string, bytes: number]> {
    return this.stored.all();
  }

  /** Runs `work`, which writes or removes a document: alone with it, and with all records if it is one that is stored. */
  private change<Result>(database: DatabaseName, id: string, work: () => Promise<Result>): Promise<Result> {
    return this.queue.run(`${database} ${id}`, () => {
      if (database !== 'activations' || !this.documents.has(database, id)) return work();
      return this.removals.run(database, () => {
        // Expiry may have removed it.
        this.root.resetReadTxn();
        return work();
      });
    });
  }

  /** Creates the documents with the indices `keys`, whose keys are not in use, and notes in `created` which were not there. */
  private async createNow(
    database: DatabaseName,
    documents: readonly StoredDocument[],
    keys: ReadonlyMap<string, number>,
    created: boolean[],
  ): Promise<void> {
    const indices = [...keys.values()];
    const given =
      indices.length === documents.length ? documents : indices.map((index) => documents[index] as StoredDocument);
    const written = this.create(database, given).then((answers) => {
      // What is read from now on must have them.
      this.root.resetReadTxn();
      for (const [at, index] of indices.entries()) created[index] = answers[at] === true;
    });
    this.queue.holdAll(
      [...keys.keys()],
      written.catch(() => undefined),
    );
    await written;
  }

  private async createOne(database: DatabaseName, document: StoredDocument): Promise<boolean> {
    return await this.queue.run(`${database} ${document._id}`, async () => {
      if (this.documents.has(database, document._id)) return false;
      const stored = encodeNewDocument(withoutShared(database, document));
      const write = (note: NoteBytes): void =>
        note(namespaceOfDocument(database, document._id), this.documents.write(database, document, stored));
      await this.room.write(documentCost(stored.length), keptBy(database), () => this.stored.durable(write));
      return true;
    });
  }

  /** Has the thread create documents if there is space for them. */
  private async create(database: DatabaseName, documents: readonly StoredDocument[]): Promise<boolean[]> {
    const [document] = documents;
    if (document !== undefined && documents.length === 1 && hasLongLogs(document)) {
      const pieces = await jsonPieces(document);
      const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
      const create = (): Promise<boolean[]> => this.largeCreation.createLarge(database, pieces);
      return await this.room.write(documentCost(bytes), keptBy(database), create);
    }
    const json = JSON.stringify(documents);
    const cost = documents.length * documentCost(0) + documentCost(Buffer.byteLength(json));
    return await this.room.write(cost, keptBy(database), () => this.creation.create(database, json));
  }

  /** Resolves when the rows of a database's documents are in their views. Rejects with StoreWriteError. */
  private async settled(database: DatabaseName): Promise<void> {
    if (!this.documents.views.hasDeferred(database)) return;
    await this.room.write(mergeCost, leaving.removal, () => this.creation.merge());
    this.root.resetReadTxn();
  }

  private checkOpen(): void {
    if (this.closed) throw new Error('the store is closed');
  }

  private read(database: DatabaseName, id: string): string | undefined {
    this.checkOpen();
    return this.documents.read(database, id);
  }

  /** The row's document, or the one that its value names (CouchDB's linked documents). */
  private addDocument(database: DatabaseName, row: ViewRow): void {
    const linked = isJsonObject(row.value) ? row.value._id : undefined;
    const stored = this.read(database, typeof linked === 'string' ? linked : row.id);
    if (stored !== undefined) row.doc = this.documents.decode(database, stored);
  }
}

/** Records with more logs are created apart, bytes. */
const mostLogBytes = 1024 * 1024;

const logsOf = ({ logs }: StoredDocument): readonly string[] => (Array.isArray(logs) ? (logs as string[]) : []);

function hasLongLogs(document: StoredDocument): boolean {
  let bytes = 0;
  for (const { length } of logsOf(document)) {
    bytes += length;
    if (bytes > mostLogBytes) return true;
  }
  return false;
}

/** A record as JSON, a piece of its logs in a turn. */
async function jsonPieces(document: StoredDocument): Promise<Uint8Array<ArrayBuffer>[]> {
  const encoder = new TextEncoder();
  const rest = JSON.stringify({ ...document, logs: undefined });
  const pieces = [encoder.encode(`${rest.slice(0, -1)},"logs":[`)];
  const logs = logsOf(document);
  for (let from = 0; from < logs.length;) {
    await nextPiece(systemClock);
    let to = from;
    for (let bytes = 0; to < logs.length && bytes < pieceBytes; to += 1) bytes += (logs[to] as string).length;
    const comma = from === 0 ? '' : ',';
    pieces.push(encoder.encode(comma + JSON.stringify(logs.slice(from, to)).slice(1, -1)));
    from = to;
  }
  pieces.push(encoder.encode(']}'));
  return pieces;
}

/** What the creation of documents leaves: records belong to activations that were accepted. */
const keptBy = (database: DatabaseName): number =>
  database === 'whisks' ? leaving.acceptance : database === 'activations' ? leaving.record : leaving.platform;

/*
 * Where LMDB (0.9.90, data version 2, 64 bit) keeps what we look at, from the start of its first page. The second
 * page is laid out alike; the one with the higher transaction number counts.
 */
const magicAt = 24;
const pageSizeAt = 48;
const freeRootAt = 88;
const mainRootAt = 136;
const lastPageAt = 144;
const transactionAt = 152;
const metaBytes = 160;
const magic = 0xbeefc0de;
const noPage = 0xffff_ffff_ffff_ffffn;

/**
 * Looks whether LMDB's file in `folder`, if there is one, can be opened: the library crashes the process on a file
 * that is none of its own or lacks its end. Throws StoreOpenError.
 */
async function checkLmdbFile(disk: Disk, folder: string): Promise<void> {
  if (!(await disk.list(folder)).includes('data.mdb')) return;
  const file = await disk.open(`${folder}/data.mdb`);
  try {
    const reason = await damageOf(file);
    if (reason) throw new StoreOpenError(`the database in '${folder}' cannot be opened: data.mdb ${reason}`);
  } finally {
    await file.close();
  }
}

async function damageOf(file: DiskFile): Promise<string | undefined> {
  const size = await file.size();
  if (size === 0) return undefined;
  const first = await readMeta(file, 0);
  const pageSize = first?.readUInt32LE(pageSizeAt) ?? 0;
  const second = first && (await readMeta(file, pageSize));
  if (!first || !second) return 'is not an LMDB file, or is damaged';
  const newest = first.readBigUInt64LE(transactionAt) > second.readBigUInt64LE(transactionAt) ? first : second;
  const pages = BigInt(Math.floor(size / pageSize));
  const roots = [newest.readBigUInt64LE(freeRootAt), newest.readBigUInt64LE(mainRootAt)];
  // Pages at the end that were freed before they were ever written may be missing, so some must be allowed.
  const wanted = ((newest.readBigUInt64LE(lastPageAt) + 1n) * 3n) / 4n;
  if (pages < wanted || roots.some((root) => root !== noPage && root >= pages)) return 'lacks its end';
  return undefined;
}

async function readMeta(file: DiskFile, offset: number): Promise<Buffer | undefined> {
  const read = await file.read(offset, metaBytes);
  const meta = Buffer.from(read.buffer, read.byteOffset, read.byteLength);
  return meta.length === metaBytes && meta.readUInt32LE(magicAt) === magic ? meta : undefined;
}
