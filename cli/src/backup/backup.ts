import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { WskError } from '../errors.js';
import { RefusedError, type Server } from '../migrate/http.js';
import { isObject, objectsOf, textOf } from '../migrate/values.js';
import { readArchive, writeArchive, type ArchivedDocument } from './archive.js';

/** Documents of one answer, without their attachments. */
const pageRows = 200;

/** Options of a backup. */
interface BackupOptions {
  /** CouchDB's root. */
  server: Server;
  prefix: string;
  /** Names behind the prefix. */
  databases: readonly string[];
  file: string;
  /** ISO 8601. */
  createdAt: string;
}

/**
 * Writes all documents of the existing databases, with their attachments, into one file. Each document has the state of
 * some moment during the backup. Returns the number of documents. Throws RefusedError, UnreachableError, WskError.
 */
export async function backUp(options: BackupOptions): Promise<number> {
  const { server, prefix, databases, file, createdAt } = options;
  async function* documents(): AsyncGenerator<ArchivedDocument> {
    for (const database of databases) {
      for await (const document of allDocuments(server, pathOf(prefix, database))) {
        if (!isOfProcess(database, document)) yield { database, document };
      }
    }
  }
  return writeArchive(file, { createdAt, databases }, documents());
}

/** Whether the document maps a process number to a data folder: another cluster has other data folders. */
function isOfProcess(database: string, { _id }: JsonObject): boolean {
  return database === 'gpu' && textOf(_id).startsWith('process/');
}

/** The names in `databases` of existing databases. Throws RefusedError, UnreachableError. */
export async function existing(server: Server, prefix: string, databases: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const database of databases) if (await exists(server, pathOf(prefix, database))) found.push(database);
  return found;
}

function pathOf(prefix: string, database: string): string {
  return encodeURIComponent(`${prefix}${database}`);
}

async function exists(server: Server, path: string): Promise<boolean> {
  try {
    await server.json('GET', path);
    return true;
  } catch (error) {
    if (error instanceof RefusedError && error.status === 404) return false;
    throw error;
  }
}

async function* allDocuments(server: Server, path: string): AsyncGenerator<JsonObject> {
  const query = new URLSearchParams({ include_docs: 'true', limit: String(pageRows) });
  for (;;) {
    const answer = await server.json('GET', `${path}/_all_docs?${query.toString()}`);
    const rows = isObject(answer) ? objectsOf(answer.rows) : [];
    for (const { doc } of rows) {
      if (!isObject(doc)) continue;
      if (doc._attachments === undefined) yield doc;
      else {
        const whole = await withAttachments(server, path, doc);
        if (whole !== undefined) yield whole;
      }
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < pageRows) return;
    query.set('startkey', JSON.stringify(last.id));
    query.set('skip', '1');
  }
}

/** Undefined if the document was deleted meanwhile. */
async function withAttachments(server: Server, path: string, listed: JsonObject): Promise<JsonObject | undefined> {
  const id = textOf(listed._id);
  try {
    const document = await server.json('GET', `${path}/${encodeURIComponent(id)}?attachments=true`);
    return isObject(document) ? document : undefined;
  } catch (error) {
    if (error instanceof RefusedError && error.status === 404) return undefined;
    throw error;
  }
}

/** Most documents, and characters, of one request. */
const maxBatch = { documents: 200, characters: 8 * 1024 * 1024 };

/** Options of a restore. */
interface RestoreOptions {
  /** CouchDB's root. */
  server: Server;
  prefix: string;
  file: string;
  /** Whether existing documents of the same id are replaced; if not, databases must be empty. */
  overwrite: boolean;
}

/** Counts of a restore; `failed` lists the documents that CouchDB refused. */
interface Restored {
  documents: number;
  failed: { database: string; id: string; reason: string }[];
}

/**
 * Writes the documents of a backup, with their attachments, into the databases, and makes missing databases. Without
 * `overwrite` nothing is written if a database has documents. Throws RefusedError, UnreachableError, WskError.
 */
export async function restore(options: RestoreOptions): Promise<Restored> {
  const { server, prefix, file, overwrite } = options;
  const databases = new Set<string>();
  // A first reading finds a damaged file before any change.
  for await (const { database } of readArchive(file)) databases.add(database);
  const pathOf = (database: string): string => encodeURIComponent(`${prefix}${database}`);
  const used: string[] = [];
  for (const database of databases) if (await makeDatabase(server, pathOf(database))) used.push(`${prefix}${database}`);
  if (used.length > 0 && !overwrite) {
    throw new WskError(`${used.join(', ')}: not empty. --overwrite replaces documents that are in the backup.`);
  }
  const result: Restored = { documents: 0, failed: [] };
  let batch: JsonObject[] = [];
  let characters = 0;
  let current = '';
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    const failed = await writeBatch(server, pathOf(current), batch);
    result.documents += batch.length - failed.length;
    result.failed.push(...failed.map((one) => ({ database: current, ...one })));
    batch = [];
    characters = 0;
  };
  for await (const { database, document } of readArchive(file)) {
    const size = JSON.stringify(document).length;
    const full = batch.length >= maxBatch.documents || characters + size > maxBatch.characters;
    if (database !== current || full) await flush();
    current = database;
    batch.push(document);
    characters += size;
  }
  await flush();
  return result;
}

/** Whether the database has documents other than those that define views. */
async function makeDatabase(server: Server, path: string): Promise<boolean> {
  try {
    await server.json('PUT', path);
  } catch (error) {
    if (!(error instanceof RefusedError && error.status === 412)) throw error;
  }
  for (const range of ['endkey="_design"', 'startkey="_design0"']) {
    const answer = await server.json('GET', `${path}/_all_docs?limit=1&${range}`);
    if (isObject(answer) && objectsOf(answer.rows).length > 0) return true;
  }
  return false;
}

async function writeBatch(server: Server, path: string, batch: readonly JsonObject[]) {
  const keys = batch.map(({ _id }) => textOf(_id));
  const answer = await server.json('POST', `${path}/_all_docs`, { keys });
  const revisions = new Map<string, JsonValue>();
  for (const { id, value } of isObject(answer) ? objectsOf(answer.rows) : []) {
    if (isObject(value) && value.deleted !== true && value.rev !== undefined) revisions.set(textOf(id), value.rev);
  }
  const docs = batch.map((document) => asNew(document, revisions.get(textOf(document._id))));
  const written = await server.json('POST', `${path}/_bulk_docs`, { docs });
  return (Array.isArray(written) ? objectsOf(written) : []).flatMap(({ id, error, reason }) =>
    error === undefined ? [] : [{ id: textOf(id), reason: `${textOf(error)}: ${textOf(reason)}` }],
  );
}

/** The document to write over revision `rev`, or as a new one; the origin of attachments is left out. */
function asNew(document: JsonObject, rev: JsonValue | undefined): JsonObject {
  const copy = { ...document };
  delete copy._rev;
  if (rev !== undefined) copy._rev = rev;
  if (isObject(copy._attachments)) {
    const attachments = Object.entries(copy._attachments).map(([name, one]): [string, JsonValue] => [
      name,
      isObject(one) ? { content_type: one.content_type ?? 'application/octet-stream', data: one.data ?? '' } : one,
    ]);
    copy._attachments = Object.fromEntries(attachments);
  }
  return copy;
}
