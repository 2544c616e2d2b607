// Views of source and target of a migration: a database of a CouchDB, the platform's documents as an operator sees
// them, and a namespace of either as the owner of its key sees it.
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { RefusedError, type Server } from './http.js';
import { isObject, objectsOf, textOf } from './values.js';

/** Documents of one answer; each may contain code. */
const pageRows = 100;

/** A database of a CouchDB server. All methods throw RefusedError and UnreachableError. */
export interface CouchDatabase {
  /** Number of documents, those that define views included. */
  count(): Promise<number>;
  /** All documents but those that define views, by id, or those whose id begins with `under`. */
  pages(under?: string): AsyncGenerator<JsonObject[]>;
  attachment(id: string, name: string): Promise<Buffer>;
}

/** The database `name` of a server, whose base is CouchDB's root. */
export function openCouchDatabase(server: Server, name: string): CouchDatabase {
  const root = encodeURIComponent(name);
  return {
    async count() {
      const info = await server.json('GET', root);
      return isObject(info) && typeof info.doc_count === 'number' ? info.doc_count : 0;
    },
    async *pages(under) {
      const query = new URLSearchParams({ include_docs: 'true', limit: String(pageRows) });
      if (under !== undefined) {
        query.set('startkey', JSON.stringify(under));
        query.set('endkey', JSON.stringify(`${under}\ufff0`));
      }
      for (;;) {
        const answer = await server.json('GET', `${root}/_all_docs?${query.toString()}`);
        const rows = isObject(answer) ? objectsOf(answer.rows) : [];
        yield rows.flatMap(({ id, doc }) => (isObject(doc) && !textOf(id).startsWith('_design/') ? [doc] : []));
        const last = rows.at(-1);
        if (last === undefined || rows.length < pageRows) return;
        query.set('startkey', JSON.stringify(last.id));
        query.set('skip', '1');
      }
    },
    attachment: (id, attachment) => server.bytes(`${root}/${encodeURIComponent(id)}/${encodeURIComponent(attachment)}`),
  };
}

const targetPageRows = 1000;

/** The databases of the platform's administration. */
export type DatabaseName = 'subjects' | 'whisks' | 'activations';

/** The platform's documents, as an operator sees them. All methods throw RefusedError and UnreachableError. */
export interface RawTarget {
  ids(database: DatabaseName): Promise<Set<string>>;
  get(database: DatabaseName, id: string): Promise<JsonObject>;
  /** Creates a document, or replaces the revision `_rev`; `_attachments` as CouchDB has them inline. */
  put(database: DatabaseName, document: JsonObject): Promise<void>;
  /** Creates documents; resolves with the number of documents that were new. */
  createMany(database: DatabaseName, documents: JsonObject[]): Promise<number>;
}

/** The documents behind an API server whose key is an operator's. */
export function openRawTarget(server: Server): RawTarget {
  const documents = (database: DatabaseName): string => `admin/databases/${database}/documents`;
  const one = (database: DatabaseName, id: string): string => `${documents(database)}/${encodeURIComponent(id)}`;
  return {
    async ids(database) {
      const ids = new Set<string>();
      const query = new URLSearchParams({ limit: String(targetPageRows) });
      for (;;) {
        const answer = await server.json('GET', `${documents(database)}?${query.toString()}`);
        const rows = isObject(answer) ? objectsOf(answer.rows) : [];
        for (const { id } of rows) ids.add(textOf(id));
        const last = rows.at(-1);
        if (last === undefined || rows.length < targetPageRows) return ids;
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

/** The collections of OpenWhisk's API. */
export type Collection = 'packages' | 'actions' | 'triggers' | 'rules';

/** Most rows of one answer in OpenWhisk. */
const namespacePageRows = 200;

/** A namespace as the owner of its key sees it. All methods throw RefusedError and UnreachableError. */
export interface Namespace {
  readonly name: string;
  list(collection: Collection): Promise<JsonObject[]>;
  /**
   * Reads an entity. `name` is `action` or `pkg/action`; `namespace` is given if the entity is in another namespace.
   */
  get(collection: Collection, name: string, namespace?: string): Promise<JsonObject>;
  put(collection: Collection, name: string, body: JsonObject, overwrite: boolean): Promise<void>;
  setRuleStatus(name: string, status: string): Promise<void>;
}

/** The namespace of the server's key. */
export async function openNamespace(server: Server): Promise<Namespace> {
  const names = await server.json('GET', 'namespaces');
  const own = Array.isArray(names) ? names[0] : undefined;
  if (typeof own !== 'string') throw new RefusedError(0, `${server.base.host} named no namespace for the key`);
  const pathOf = (collection: Collection, name: string, namespace = own): string =>
    ['namespaces', namespace, collection, ...name.split('/')].map(encodeURIComponent).join('/');
  return {
    name: own,
    async list(collection) {
      const rows = new Map<string, JsonObject>();
      for (let skip = 0; ; skip += namespacePageRows) {
        const query = `?limit=${namespacePageRows}&skip=${skip}`;
        const page = objectsOf(await server.json('GET', `namespaces/${encodeURIComponent(own)}/${collection}${query}`));
        // Concurrent writes move rows to later pages, which then hold them a second time.
        for (const row of page) rows.set(fullName(row), row);
        if (page.length < namespacePageRows) return [...rows.values()];
      }
    },
    async get(collection, name, namespace) {
      return asObject(await server.json('GET', pathOf(collection, name, namespace)), name);
    },
    async put(collection, name, body, overwrite) {
      await server.json('PUT', `${pathOf(collection, name)}?overwrite=${overwrite}`, body);
    },
    async setRuleStatus(name, status) {
      await server.json('POST', pathOf('rules', name), { status });
    },
  };
}

/** `ns/name` or `ns/pkg/name` of an entity as the API shows it. */
export function fullName(entity: JsonObject): string {
  return `${textOf(entity.namespace)}/${textOf(entity.name)}`;
}

/** The name below the namespace: `name` or `pkg/name`. */
export function localName(entity: JsonObject): string {
  const full = fullName(entity);
  return full.slice(full.indexOf('/') + 1);
}

function asObject(value: JsonValue, name: string): JsonObject {
  if (isObject(value)) return value;
  throw new RefusedError(0, `the answer about '${name}' is no JSON object`);
}
