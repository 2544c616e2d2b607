import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { RefusedError, type Server } from './http.js';
import { isObject, objectsOf, textOf } from './values.js';

/** The collections of OpenWhisk's API. */
export type Collection = 'packages' | 'actions' | 'triggers' | 'rules';

/** Rows that one answer may hold in OpenWhisk. */
const pageRows = 200;

/** A namespace as the owner of its key sees it. All throw RefusedError and UnreachableError. */
export interface Namespace {
  readonly name: string;
  list(collection: Collection): Promise<JsonObject[]>;
  /** `name` is `action` or `pkg/action`; `namespace` another one than this. */
  get(collection: Collection, name: string, namespace?: string): Promise<JsonObject>;
  put(collection: Collection, name: string, body: JsonObject, overwrite: boolean): Promise<void>;
  setRuleStatus(name: string, status: string): Promise<void>;
}

/** The namespace that the server's key is for. */
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
      for (let skip = 0; ; skip += pageRows) {
        const query = `?limit=${pageRows}&skip=${skip}`;
        const page = objectsOf(await server.json('GET', `namespaces/${encodeURIComponent(own)}/${collection}${query}`));
        // Concurrent writes move rows to later pages, which then hold them a second time.
        for (const row of page) rows.set(fullName(row), row);
        if (page.length < pageRows) return [...rows.values()];
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

/** `ns/name` or `ns/pkg/name` of anything that the API shows. */
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
