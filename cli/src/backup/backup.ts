import type { JsonObject } from '@gpuwhisk/common/json';
import { RefusedError, type Server } from '../migrate/http.js';
import { isObject, objectsOf, textOf } from '../migrate/values.js';
import { writeArchive, type ArchivedDocument } from './archive.js';

/** Documents of one answer, without their attachments. */
const pageRows = 200;

/** What is written where. */
export interface BackupOptions {
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
 * Writes all documents of the databases that are there, with their attachments, into one file. Each document is as it
 * was at some time during the backup. Returns the number of documents. Throws RefusedError, UnreachableError, WskError.
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

/** Which number belongs to which data folder: another cluster has folders of its own. */
function isOfProcess(database: string, { _id }: JsonObject): boolean {
  return database === 'gpu' && textOf(_id).startsWith('process/');
}

/** Those of the databases that are there. Throws RefusedError, UnreachableError. */
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

/** Undefined: it was deleted meanwhile. */
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
