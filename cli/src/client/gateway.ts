import { argumentError, exitCodes, messageOf, wrapError, WskError } from '../errors.js';
import { parseYaml, readTextFile } from '../files.js';
import { asList, asMap, asText, stringify, type Json, type JsonMap } from '../json/json.js';
import { parseJson } from '../json/parse.js';
import type { Settings } from '../settings.js';
import { apiVerbs } from '../shapes.js';
import { query } from './transport.js';
import type { Client } from './client.js';

/** Selects an API or a part of it, and a page of the list; an absent member selects all. */
interface ApiQuery {
  basepath?: string | undefined;
  relpath?: string | undefined;
  operation?: string | undefined;
  responsetype?: string | undefined;
  limit?: number | undefined;
  skip?: number | undefined;
}

const routes = {
  GET: 'web/whisk.system/apimgmt/getApi.http',
  POST: 'web/whisk.system/apimgmt/createApi.http',
  DELETE: 'web/whisk.system/apimgmt/deleteApi.http',
};

/**
 * Calls one of the actions that manage the API gateway.
 * @throws WskError if there is no key, or the call fails.
 */
export function callGateway(
  client: Client,
  settings: Settings,
  method: keyof typeof routes,
  which: ApiQuery,
  body?: Json,
): Promise<Json> {
  const spaceguid = settings.gatewayTenant || (settings.auth.split(':')[0] ?? '');
  if (spaceguid === '') throw new WskError('Authorization key is not configured (--auth is required)');
  const options = { ...which, spaceguid, accesstoken: settings.gatewayToken || 'DUMMY TOKEN' };
  return client.callRoute(method, `${routes[method]}${query(options)}`, body);
}

/** The APIs in an answer to GET. */
export function apisOf(answer: Json): JsonMap[] {
  return asList(asMap(answer).get('apis')).map((item) => asMap(asMap(item).get('value')));
}

/** One method of one path of an API. */
export interface Operation {
  path: string;
  /** In lower case. */
  verb: string;
  /** `/namespace/[package/]action`; empty if the operation is not backed by an action. */
  action: string;
  api: JsonMap;
}

/** The operations of an API, or those of one path or one method. */
export function operationsOf(api: JsonMap, onlyPath = '', onlyVerb = ''): Operation[] {
  const paths = asMap(asMap(api.get('apidoc')).get('paths'));
  return [...paths].flatMap(([path, methods]) =>
    apiVerbs
      .filter((verb) => asMap(methods).get(verb) instanceof Map)
      .filter((verb) => (onlyPath === '' || path === onlyPath) && (onlyVerb === '' || verb === onlyVerb.toLowerCase()))
      .map((verb) => ({ path, verb, action: actionOf(asMap(asMap(methods).get(verb))), api })),
  );
}

function actionOf(operation: JsonMap): string {
  const backend = operation.get('x-openwhisk');
  if (!(backend instanceof Map)) return '';
  const parts = ['namespace', 'package', 'action'].map((member) => asText(backend.get(member)));
  return `/${parts.filter((part, index) => index !== 1 || part !== '').join('/')}`;
}

/** @throws WskError if the gateway's management answered with something other than an API. */
export function checkApi(api: JsonMap): JsonMap {
  const fail = (message: string): never => {
    throw new WskError(message, { exitCode: exitCodes.network });
  };
  if (!(api.get('apidoc') instanceof Map)) fail('Internal error. Missing apidoc stanza in API configuration');
  for (const methods of asMap(asMap(api.get('apidoc')).get('paths')).values()) {
    for (const verb of apiVerbs) {
      const operation = asMap(asMap(methods).get(verb));
      const backend = operation.get('x-openwhisk');
      if (!(backend instanceof Map)) continue;
      const needed = [['operationId', operation], ...['namespace', 'action', 'url'].map((name) => [name, backend])];
      for (const [name, holder] of needed as [string, JsonMap][]) {
        if (asText(holder.get(name)) !== '') continue;
        const shown = holder === backend ? `x-openwhisk.${name}` : name;
        fail(`Missing ${shown} field in API configuration for operation ${verb}`);
      }
    }
  }
  return api;
}

/** The error as `wsk api` reports it: the exit code is always 1. */
export function apiError(error: unknown, context: string): WskError {
  return new WskError(`${context}: ${messageOf(error)}`);
}

/**
 * Reads an API's swagger file and returns it as JSON text; a file with YAML's extension is read as YAML.
 * @throws WskError if the file cannot be read or lacks required members.
 */
export async function readSwagger(file: string): Promise<string> {
  const source = read(file);
  const text = /ya?ml$/.test(file) ? await yamlToJson(source) : source;
  let swagger: Json;
  try {
    swagger = parseJson(text);
  } catch (error) {
    throw argumentError(`Error parsing swagger file '${file}': ${messageOf(error)}`);
  }
  const document = asMap(swagger);
  const basePath = asText(document.get('basePath'));
  const complete = basePath !== '' && asText(document.get('swagger')) !== '';
  if (!complete || !(document.get('info') instanceof Map) || !(document.get('paths') instanceof Map)) {
    throw argumentError('Swagger file is invalid (missing basePath, info, paths, or swagger fields)');
  }
  if (!basePath.startsWith('/')) throw argumentError('Swagger file basePath must start with a leading slash (/)');
  return text;
}

function read(file: string): string {
  try {
    return readTextFile(file);
  } catch (error) {
    throw wrapError(error, `Error reading swagger file '${file}'`, { showUsage: true });
  }
}

async function yamlToJson(text: string): Promise<string> {
  try {
    return stringify(await parseYaml(text));
  } catch (error) {
    throw new WskError(`Unable to parse YAML configuration file: ${messageOf(error)}`);
  }
}

/** The part of the `apidoc` that names the action behind the route. */
export function apiDocAction(
  action: { path: string; namespace: string },
  url: string,
  method: string,
  auth: string,
): JsonMap {
  return new Map([
    ['name', action.path],
    ['namespace', action.namespace],
    ['backendMethod', method],
    ['backendUrl', url],
    ['authkey', auth],
  ]);
}

/** The `apidoc` of a request to create a route. */
export function apiDocument(
  route: {
    namespace: string;
    apiName: string;
    basePath: string;
    path: string;
    verb: string;
    parameters: JsonMap[];
    /** Whether the base path is the name of an existing API. */
    isName?: boolean;
  },
  action: JsonMap,
): JsonMap {
  const { namespace, apiName, basePath, path, verb, parameters, isName } = route;
  const members: [string, Json][] = [
    ['namespace', namespace],
    ['apiName', apiName],
    ['gatewayBasePath', basePath],
    ['gatewayPath', path],
    ['gatewayMethod', verb],
    ['id', isName ? '' : `API:${namespace}:${basePath}`],
    ['action', action],
    ['pathParameters', parameters],
  ];
  const isGiven = (value: Json): boolean => value !== '' && !(Array.isArray(value) && value.length === 0);
  return new Map(members.filter(([, value]) => isGiven(value)));
}

/** A swagger parameter for each `{name}` that is a whole segment of the path. */
export function pathParameters(path: string): JsonMap[] {
  const names = path.split('/').flatMap((segment) => /^\{([^/]+)\}$/.exec(segment)?.[1] ?? []);
  return [...new Set(names)].map(
    (name) =>
      new Map<string, Json>([
        ['name', name],
        ['in', 'path'],
        ['description', `Default description for '${name}'`],
        ['required', true],
        ['type', 'string'],
      ]),
  );
}
