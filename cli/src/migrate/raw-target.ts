import type { JsonObject } from '@gpuwhisk/common/json';
import type { Server } from './http.js';
import { isObject, objectsOf, textOf } from './values.js';

const pageRows = 1000;

/** The databases of the platform's administration. */
export type DatabaseName = 'subjects' | 'whisks' | 'activations';

/** The platform's documents, as an operator sees them. All throw RefusedError and UnreachableError. */
export interface RawTarget {
  ids(database: DatabaseName): Promise<Set<string>>;
  get(database: DatabaseName, id: string): Promise<JsonObject>;
  /** Creates a document, or replaces the revision `_rev`; `_attachments` as CouchDB has them inline. */
  put(database: DatabaseName, document: JsonObject): Promise<void>;
  /** Creates documents; resolves with how many were not there before. */
  createMany(database: DatabaseName, documents: JsonObject[]): Promise<number>;
}

/** The documents behind an API server whose key is an operator's. */
export function openRawTarget(server: Server): RawTarget {
  const documents = (database: DatabaseName): string => `admin/databases/${database}/documents`;
  const one = (database: DatabaseName, id: string): string => `${documents(database)}/${encodeURIComponent(id)}`;
  return {
    async ids(database) {
      const ids = new Set<string>();
      const query = new URLSearchParams({ limit: String(pageRows) });
      for (;;) {
        const answer = await server.json('GET', `${documents(database)}?${query.toString()}`);
        const rows = isObject(answer) ? objectsOf(answer.rows) : [];
        for (const { id } of rows) ids.add(textOf(id));
        const last = rows.at(-1);
        if (last === undefined || rows.length < pageRows) return ids;
        query.set('after', textOf(last.id));
      }
    },
    async get(database, id) {
      const document = await server.json('GET', one(database, id));
      return isObject(document) ? document : {};
    },
    async put(database, document) {
      await server.json('PUT', one(database, textOf(document._id)), document);
    },
    async createMany(database, all) {
      const answer = await server.json('POST', documents(database), { documents: all });
      const created = isObject(answer) && Array.isArray(answer.created) ? answer.created : [];
      return created.filter((one) => one === true).length;
    },
  };
}
