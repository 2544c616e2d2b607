import type {
  ArtifactStore,
  Attachment,
  DatabaseName,
  DocumentShape,
  NamedAttachment,
  StoredDocument,
  TextQuery,
  ViewKey,
  ViewName,
  ViewQuery,
  ViewRow,
} from '@gpuwhisk/common/store/artifact-store';
import {
  DocumentConflictError,
  NoDocumentError,
  StoreOpenError,
  StoreRefusedError,
  StoreWriteError,
} from '@gpuwhisk/common/store/artifact-store';
import { documentText, textsByQuery } from '@gpuwhisk/common/activations/record-texts';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { CouchError, couchClient } from './couchdb-client.js';
import type { CouchClient, CouchRequest } from './couchdb-client.js';
import { designDocuments, storedDatabases, storedDesign, storedView, viewPlaces } from './design-documents.js';
import type { ViewPlace } from './design-documents.js';
import { endedBefore, hasExpired, lookedAt, partsByStart } from '@gpuwhisk/common/store/views';
import { compactSparse, removeExpired } from './expiry.js';
import { prepareDatabases, serverWarnings } from './prepare-databases.js';
import { StoredSizes } from './stored-sizes.js';

/** Which CouchDB, and which databases there. */
export interface CouchdbOptions {
  /** `http://user:password@host:5984`. */
  url: string;
  /** The databases are `<prefix>subjects`, `<prefix>whisks`, `<prefix>activations` (OpenWhisk's) and `<prefix>gpu`. */
  prefix: string;
  /** After which a request is given up, ms. */
  timeoutMs: number;
  clock: Clock;
  /** Told in lines: at the start what of the server's configuration is known to harm, later when sizes cannot be read. */
  onWarning?: (warning: string) => void;
  /** From one reading of the bytes that namespaces have stored to the next, ms; default 5000. */
  sizesEveryMs?: number;
}

/**
 * The store in a CouchDB server, in OpenWhisk's layout: databases of an OpenWhisk are used as they are, missing ones are
 * made, with the views that are asked for. Throws StoreOpenError.
 */
export async function openCouchdbStore(options: CouchdbOptions): Promise<ArtifactStore> {
  const { url, prefix, timeoutMs, clock, onWarning } = options;
  const client = couchClient(url, timeoutMs, clock);
  try {
    await prepareDatabases(client, prefix, clock);
    if (onWarning) for (const warning of await serverWarnings(client)) onWarning(warning);
  } catch (error) {
    const { message } = error as Error;
    throw new StoreOpenError(`CouchDB at ${client.address} cannot be used: ${message}`, { cause: error });
  }
  return new CouchdbStore(client, options);
}

/** Rows that are looked at together. */
const pageRows = 1000;

class CouchdbStore implements ArtifactStore {
  private readonly underWay = new Set<Promise<unknown>>();
  private readonly sizes: StoredSizes;
  private readonly prefix: string;
  private readonly clock: Clock;
  private closed = false;

  constructor(
    private readonly client: CouchClient,
    { prefix, clock, onWarning = () => undefined, sizesEveryMs: everyMs = 5000 }: CouchdbOptions,
  ) {
    this.prefix = prefix;
    this.clock = clock;
    this.sizes = new StoredSizes({ clock, everyMs, onWarning, read: (namespaces) => this.readSizes(namespaces) });
  }

  async get(database: DatabaseName, id: string): Promise<StoredDocument> {
    return documentOf(await this.read(database, id));
  }

  async put(
    database: DatabaseName,
    document: StoredDocument,
    attachments?: readonly NamedAttachment[],
  ): Promise<string> {
    const { _id: id } = document;
    const kept = attachments === undefined && document._rev !== undefined ? await this.attachmentsOf(database, id) : {};
    const all = { ...kept, ...Object.fromEntries((attachments ?? []).map(inline)) };
    const body: JsonObject = Object.keys(all).length > 0 ? { ...document, _attachments: all } : document;
    try {
      const answer = await this.write({ database, method: 'PUT', path: encodeURIComponent(id), body });
      return String((answer as JsonObject).rev);
    } catch (error) {
      if (isConflict(error)) throw new DocumentConflictError(id);
      throw error;
    }
  }

  async createMany(database: DatabaseName, documents: readonly StoredDocument[]): Promise<boolean[]> {
    if (documents.length === 0) return [];
    // The first of those with one id is the one that is created.
    const first = new Map<string, StoredDocument>();
    for (const document of documents) if (!first.has(document._id)) first.set(document._id, document);
    const body = { docs: [...first.values()] };
    const answer = await this.write({ database, method: 'POST', path: '_bulk_docs', body });
    const refused = new Set<string>();
    for (const result of Array.isArray(answer) ? answer.filter(isJsonObject) : []) {
      if (result.error === 'conflict') refused.add(String(result.id));
      else if (result.error !== undefined) {
        throw rowError(String(result.id), String(result.error), String(result.reason ?? result.error));
      }
    }
    return documents.map((document) => first.get(document._id) === document && !refused.has(document._id));
  }

  async delete(database: DatabaseName, id: string, revision: string): Promise<void> {
    const path = encodeURIComponent(id);
    try {
      await this.write({ database, method: 'DELETE', path, query: { rev: revision } });
    } catch (error) {
      if (isConflict(error)) throw new DocumentConflictError(id);
      if (!isMissing(error)) throw error;
      // Some servers say so of a revision that is not there, too.
      await this.read(database, id);
      throw new DocumentConflictError(id);
    }
  }

  async list(database: DatabaseName, { after, limit }: { after?: string; limit: number }): Promise<StoredDocument[]> {
    const found: StoredDocument[] = [];
    let behind = after;
    while (found.length < limit) {
      const wanted = limit - found.length + 1;
      const query = { include_docs: true, limit: wanted, ...(behind !== undefined && { startkey: behind }) };
      const rows = rowsOf(await this.ask({ database, path: '_all_docs', query }));
      for (const { id, doc } of rows) {
        const isNew = id !== behind && found.length < limit;
        if (isNew && !String(id).startsWith('_design/') && isJsonObject(doc)) found.push(documentOf(doc));
      }
      behind = String(rows.at(-1)?.id ?? behind);
      if (rows.length < wanted) break;
    }
    return found;
  }

  async query(database: DatabaseName, query: ViewQuery): Promise<ViewRow[]> {
    if (query.limit === 0) return [];
    const { descending = false, skip, limit, includeDocs } = query;
    const rows = await this.rows(database, query.view, {
      ...rangeOf(query, descending),
      ...(descending && { descending }),
      ...(skip && { skip }),
      ...(limit !== undefined && { limit }),
      ...(includeDocs && { include_docs: true }),
    });
    return rows.map(({ id, key, value, doc }) => {
      const row: ViewRow = { id: String(id), key: keyOf(key), value: value ?? null };
      if (isJsonObject(doc) && doc._deleted !== true) row.doc = documentOf(doc);
      return row;
    });
  }

  texts(database: DatabaseName, { endedSince, ...query }: TextQuery): AsyncIterable<Uint8Array> {
    const get = (_: DatabaseName, id: string): Promise<StoredDocument> => this.get(database, id);
    const rows = (): Promise<ViewRow[]> =>
      endedSince === undefined ? this.query(database, query) : this.endedSince(database, query, endedSince);
    return textsByQuery({ query: rows, get }, database, query);
  }

  async text(
    database: DatabaseName,
    id: string,
    as: DocumentShape,
    _reader: string,
    endedSince?: number,
  ): Promise<Uint8Array> {
    const document = await this.get(database, id);
    if (endedBefore(document, endedSince)) throw new NoDocumentError(id);
    return Buffer.from(documentText(document, as));
  }

  async count(
    database: DatabaseName,
    { endedSince, ...query }: Parameters<ArtifactStore['count']>[1],
  ): Promise<number> {
    if (endedSince !== undefined) {
      const { younger, older } = partsByStart(query, endedSince);
      const since = younger ? await this.count(database, { ...query, ...younger }) : 0;
      return since + (older ? (await this.olderRows(database, { ...query, ...older }, endedSince)).length : 0);
    }
    if (!viewPlaces[query.view].counts) return (await this.rows(database, query.view, rangeOf(query, false))).length;
    const [total] = await this.rows(database, query.view, { ...rangeOf(query, false), reduce: true });
    return Number(total?.value ?? 0);
  }

  /** Rows of a query, newest first, but those of records that ended before `endedSince`. */
  private async endedSince(
    database: DatabaseName,
    { skip = 0, limit = Infinity, ...query }: ViewQuery,
    endedSince: number,
  ): Promise<ViewRow[]> {
    const { younger, older } = partsByStart(query, endedSince);
    const most = limit === Infinity ? {} : { limit };
    const found: ViewRow[] = [];
    let left = skip;
    if (younger) {
      found.push(...(await this.query(database, { ...query, ...younger, skip, ...most })));
      const isPassed = found.length > 0 || skip === 0;
      left = isPassed ? 0 : skip - (await this.count(database, { view: query.view, ...younger }));
    }
    if (older === undefined || found.length >= limit) return found;
    const rows = await this.olderRows(
      database,
      { view: query.view, ...older },
      endedSince,
      left + limit - found.length,
    );
    return [...found, ...rows.slice(left)];
  }

  /** Rows of records that ended since `endedSince`, newest first, `wanted` at most, of those that started before. */
  private async olderRows(
    database: DatabaseName,
    query: Pick<ViewQuery, 'view' | 'startKey' | 'endKey'>,
    endedSince: number,
    wanted = Infinity,
  ): Promise<ViewRow[]> {
    const found: ViewRow[] = [];
    for (let skip = 0; skip < lookedAt && found.length < wanted; skip += pageRows) {
      const rows = await this.query(database, { ...query, descending: true, skip, limit: pageRows });
      found.push(...rows.filter(({ key, value }) => !hasExpired(value, Number(key[1]), endedSince)));
      if (rows.length < pageRows) break;
    }
    return found.slice(0, wanted);
  }

  async *expire(beforeMs: number): AsyncIterable<number> {
    const ask = (request: CouchRequest) => this.ask({ ...request, database: 'activations' });
    const view = (query: Record<string, JsonValue>) => this.rows('activations', 'activations', query);
    let removed = 0;
    for await (const count of removeExpired({ ask, view, clock: this.clock }, beforeMs)) {
      removed += count;
      yield count;
    }
    if (removed > 0) await compactSparse(ask, Object.keys(designDocuments.activations));
  }

  async getAttachment(database: DatabaseName, id: string, name: string): Promise<Attachment> {
    // In the document, as text: asked for by itself, bytes of a text type would be read as characters.
    const document = await this.read(database, id, { attachments: true });
    const stored = isJsonObject(document._attachments) ? document._attachments[name] : undefined;
    if (!isJsonObject(stored) || typeof stored.data !== 'string') throw new NoDocumentError(`${id}/${name}`);
    return { contentType: String(stored.content_type), bytes: Buffer.from(stored.data, 'base64') };
  }

  async close(): Promise<void> {
    this.closed = true;
    const sizes = this.sizes.close();
    const timer = this.clock.setTimer(closeTimeoutMs, () => this.client.abort());
    await Promise.allSettled(this.underWay);
    await sizes;
    timer.cancel();
  }

  storedBytes(namespace: string): number | undefined {
    return this.sizes.of(namespace);
  }

  storedNamespaces(): Iterable<[namespace: string, bytes: number]> {
    return this.sizes.all();
  }

  /** Rows of the views of sizes, of all databases. One that is behind for long is read as it is. */
  private async readSizes(namespaces: readonly string[]): Promise<JsonObject[]> {
    const path = `_design/${storedDesign}/_view/${storedView}`;
    const query = { group: true };
    const rows = await Promise.all(
      storedDatabases.map((database) => {
        return this.asItIs({ database, path, method: 'POST', query, body: { keys: [...namespaces] } });
      }),
    );
    return rows.flat();
  }

  private async rows(database: DatabaseName, view: ViewName, query: Record<string, JsonValue>): Promise<JsonObject[]> {
    const place: ViewPlace = viewPlaces[view];
    const path = `_design/${place.design}/_view/${place.view}`;
    // Also of a view that has no reduce function here: OpenWhisk's of that name may have one.
    const rows = { reduce: false, ...query };
    // Records come all the time: a list of them may be a little old rather than late.
    return database === 'activations'
      ? await this.asItIs({ database, path, query: rows })
      : rowsOf(await this.ask({ database, path, query: rows }));
  }

  /** Rows of a view, as it is where it is behind for longer than `viewWaitMs`. */
  private async asItIs(request: CouchRequest & { database: DatabaseName }): Promise<JsonObject[]> {
    try {
      return rowsOf(await this.ask({ ...request, timeoutMs: viewWaitMs }));
    } catch (error) {
      const { status } = error as CouchError;
      if (status > 0 && status < 500) throw error;
      return rowsOf(await this.ask({ ...request, query: { ...request.query, stale: 'ok' } }));
    }
  }

  private async read(database: DatabaseName, id: string, query: Record<string, JsonValue> = {}): Promise<JsonObject> {
    try {
      return (await this.ask({ database, path: encodeURIComponent(id), query })) as JsonObject;
    } catch (error) {
      if (isMissing(error)) throw new NoDocumentError(id);
      throw error;
    }
  }

  /** Stubs of a document's attachments; a put keeps those that it names. */
  private async attachmentsOf(database: DatabaseName, id: string): Promise<JsonObject> {
    try {
      const { _attachments: stubs } = await this.read(database, id);
      return isJsonObject(stubs) ? stubs : {};
    } catch (error) {
      if (error instanceof NoDocumentError) throw new DocumentConflictError(id);
      throw error;
    }
  }

  private async write(request: CouchRequest & { database: DatabaseName }): Promise<JsonObject | JsonValue[]> {
    try {
      return await this.ask(request);
    } catch (error) {
      if (isConflict(error) || isMissing(error)) throw error;
      const { status, message, word } = error as CouchError;
      // A 400 without CouchDB's word for it comes from something between, and may pass.
      if (status === 413 || (status === 400 && word !== undefined)) {
        throw new StoreRefusedError(`CouchDB refused documents: ${message}`, status === 413, { cause: error });
      }
      throw new StoreWriteError(`CouchDB could not be written: ${message}`, { cause: error });
    }
  }

  private async ask(request: CouchRequest & { database: DatabaseName }): Promise<JsonObject | JsonValue[]> {
    if (this.closed) throw new StoreWriteError('the store is closed');
    const answer = this.client.send({ ...request, database: this.prefix + request.database });
    this.underWay.add(answer);
    try {
      return await answer;
    } finally {
      this.underWay.delete(answer);
    }
  }
}

/** There is no such document. That the database is not there says nothing about it: servers that start say so. */
function isMissing(error: unknown): boolean {
  return error instanceof CouchError && error.status === 404 && !/no_db_file|database/i.test(error.message);
}

const closeTimeoutMs = 5000;
/** How long a list of activations waits for a view that is behind, ms; then it is what the view has. */
const viewWaitMs = 5000;

/** Of one of several documents. */
function rowError(id: string, error: string, reason: string): StoreWriteError {
  const text = `CouchDB refused '${id}': ${reason}`;
  const tooLarge = /too_large/.test(error);
  return tooLarge || error === 'forbidden' ? new StoreRefusedError(text, tooLarge) : new StoreWriteError(text);
}

/** A revision that is none is one that is not the stored one. */
function isConflict(error: unknown): boolean {
  if (!(error instanceof CouchError)) return false;
  return error.status === 409 || (error.status === 400 && /\brev/i.test(error.message));
}

function inline({ name, contentType, bytes }: NamedAttachment): [string, JsonObject] {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  return [name, { content_type: contentType, data }];
}

/** What a put would take: without the stubs of attachments. */
function documentOf(stored: JsonObject): StoredDocument {
  const document = { ...stored };
  delete document._attachments;
  return document as StoredDocument;
}

function rowsOf(answer: JsonObject | JsonValue[]): JsonObject[] {
  if (Array.isArray(answer) || !Array.isArray(answer.rows)) throw new CouchError('the answer has no rows', 0);
  return answer.rows.filter(isJsonObject);
}

function keyOf(key: JsonValue | undefined): (string | number)[] {
  return (Array.isArray(key) ? key : [key]) as (string | number)[];
}

/** CouchDB reads from `startkey` on, in whichever direction. */
function rangeOf(
  { view, startKey, endKey }: Pick<ViewQuery, 'view' | 'startKey' | 'endKey'>,
  descending: boolean,
): Record<string, JsonValue> {
  const bound = (key: ViewKey): JsonValue | undefined => (viewPlaces[view].bareKeys ? key[0] : [...key]);
  const [startkey, endkey] = (descending ? [endKey, startKey] : [startKey, endKey]).map(bound);
  return { ...(startkey !== undefined && { startkey }), ...(endkey !== undefined && { endkey }) };
}
