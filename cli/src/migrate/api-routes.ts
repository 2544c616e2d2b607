import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { each } from './each.js';
import { RefusedError, type Server } from './http.js';
import type { Report } from './report.js';
import { isObject, objectsOf, sameJson, textOf } from './values.js';

/** The namespace of a key at the source and at the target, by name and server. */
export interface RoutePair {
  source: { name: string; server: Server };
  target: { name: string; server: Server };
}

/** How API routes are carried. */
export interface RouteOptions {
  concurrency: number;
  dryRun: boolean;
  overwrite: boolean;
  /** The target's name of a namespace; undefined: it is not carried. */
  renamed(namespace: string): string | undefined;
}

/** Copies the API routes of a namespace, one document for each base path. Throws UnreachableError. */
export async function carryRoutes({ source, target }: RoutePair, options: RouteOptions, report: Report): Promise<void> {
  const documents = await documentsOf(source.server).catch((error: unknown) => {
    if (!(error instanceof RefusedError)) throw error;
    // An OpenWhisk without route management has no routes.
    if (error.status !== 404) {
      report.note('namespace', source.name, `its API routes, if there are any, cannot be read: ${error.message}`);
    }
    return [];
  });
  if (documents.length === 0) return;
  const there = await documentsOf(target.server).catch((error: unknown) => {
    if (!(error instanceof RefusedError)) throw error;
    return error;
  });
  await each(documents, options.concurrency, async (document) => {
    const basePath = textOf(document.basePath);
    const name = `${source.name}${basePath}`;
    if (there instanceof RefusedError) return report.fail('api', name, there.message);
    const wanted = moved(document, target.server.base.origin, options.renamed);
    const found = there.find((one) => one.basePath === basePath);
    if (sameJson(wanted, found)) return report.add('api', 'equal');
    if (found !== undefined && !options.overwrite) {
      return report.fail('api', name, 'the target has another one of this base path (--overwrite replaces it)');
    }
    try {
      if (!options.dryRun) await put(target.server, wanted);
      report.add('api', found === undefined ? 'created' : 'replaced');
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      report.fail('api', name, error.message);
    }
  });
}

/** A web action of OpenWhisk's that manages routes; `spaceguid` is the tenant, the key's uuid. */
function management(action: string, { user }: Server): string {
  const query = new URLSearchParams({ accesstoken: 'DUMMY TOKEN', spaceguid: user });
  return `web/whisk.system/apimgmt/${action}.http?${query.toString()}`;
}

async function documentsOf(server: Server): Promise<JsonObject[]> {
  const answer = await server.json('GET', management('getApi', server));
  const rows = isObject(answer) ? objectsOf(answer.apis) : [];
  return rows.flatMap(({ value }) => (isObject(value) && isObject(value.apidoc) ? [value.apidoc] : []));
}

async function put(server: Server, swagger: JsonObject): Promise<void> {
  await server.json('POST', management('createApi', server), {
    apidoc: { namespace: '_', swagger: JSON.stringify(swagger) },
  });
}

const webAction = /^https?:\/\/[^/]+\/api\/v1\/web\/([^/]+)(\/.*)$/;

/** The document with the web actions of carried namespaces where they are now. */
function moved(document: JsonObject, origin: string, renamed: RouteOptions['renamed']): JsonObject {
  const change = (value: JsonValue): JsonValue => {
    if (Array.isArray(value)) return value.map(change);
    if (isObject(value)) return changeAll(value);
    const [, namespace = '', rest = ''] = typeof value === 'string' ? (webAction.exec(value) ?? []) : [];
    const name = renamed(namespace);
    return name === undefined ? value : `${origin}/api/v1/web/${name}${rest}`;
  };
  const changeAll = (object: JsonObject): JsonObject =>
    Object.fromEntries(
      Object.entries(object).map(([field, value]) => {
        const changed = change(value ?? null);
        if (field !== 'x-openwhisk' || !isObject(changed)) return [field, changed];
        const namespace = textOf(changed.namespace);
        return [field, { ...changed, namespace: renamed(namespace) ?? namespace }];
      }),
    );
  return changeAll(document);
}
