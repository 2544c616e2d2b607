// Operations of route management on APIs and on their keys.
import type { Identity } from '@gpuwhisk/common/entities/identity';
import {
  SwaggerError,
  gatewayOff,
  managementFailure,
  noSuchApi,
  notConfigured,
  noSuchSubscription,
  tooLargeApis,
  tooManySubscriptions,
} from '@gpuwhisk/common/gateway-errors';
import { isApiError } from '@gpuwhisk/common/errors';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { isJsonObject } from '@gpuwhisk/common/json';
import { most, sizeOf } from './api-registry.js';
import type { ApiRecord, ApiRegistry, Subscription } from './api-registry.js';
import { compileApi, normalBasePath } from './compile-api.js';
import {
  objectAt,
  textAt,
  addEndpoint,
  newSwagger,
  removeEndpoint,
  valueAt,
  objectsAt,
  configurationKey,
} from './swagger-document.js';
import type { TokenIssuers } from './api-policies.js';
import { hashOfSecret } from './api-policies.js';
import type { Endpoint } from './swagger-document.js';

/** Dependencies of route management's operations. */
export interface ManagementContext {
  registry: ApiRegistry;
  issuers: TokenIssuers;
  /** External URL of the gateway; undefined without a gateway. */
  gatewayUrl: () => string | undefined;
}

/** One call of route management: query and body as one object, and the caller if authenticated. */
interface ManagementCall {
  fields: JsonObject;
  identity: Identity | undefined;
}

/** An operation of route management. Throws ApiError (502). */
export type ManagementOperation = (context: ManagementContext, call: ManagementCall) => Promise<JsonObject>;

/** Creates an API or adds an endpoint to one; returns the description of the API. */
export const createApi: ManagementOperation = async (context, { fields, identity }) => {
  if (identity === undefined) throw managementFailure('A valid auth key is required.');
  const request = readCreateRequest(fields, identity.namespace.name);
  return await failingAs('API creation failure: ', async () => {
    if (context.gatewayUrl() === undefined) throw managementFailure(gatewayOff());
    if (request.type === 'swagger') {
      const swagger = checked(request.swagger, context.issuers);
      const basePath = normalBasePath(swagger.basePath);
      return described(await context.registry.put(identity, basePath, () => ({ swagger })), context);
    }
    const problem = pathParameterProblem({ basePath: request.basePath });
    if (problem !== undefined) throw managementFailure(problem);
    const basePath = normalBasePath(request.basePath);
    const record = await context.registry.put(identity, basePath, (before) => {
      const swagger = before?.swagger ?? newSwagger(basePath, request.apiName);
      addEndpoint(swagger, request.endpoint);
      return { swagger: checked(swagger, context.issuers) };
    });
    return described(record, context);
  });
};

/** Lists the namespace's APIs: all, or those with a base path or name. */
export const getApi: ManagementOperation = async (context, { fields, identity }) => {
  if (identity === undefined) throw managementFailure('Invalid authentication.');
  const named = await apisNamed(context.registry, identity, textAt(fields, 'basepath') ?? '');
  const apis = page(named, fields).map((record) => ({
    id: 'Not Used',
    key: 'Not Used',
    value: described(record, context),
  }));
  return { apis };
};

/** Deletes an API, one of its paths, or one operation of a path. The last path's deletion deletes the API. */
export const deleteApi: ManagementOperation = async (context, { fields, identity }) => {
  if (identity === undefined) throw managementFailure('Invalid authentication.');
  const basePathOrName = textAt(fields, 'basepath') ?? '';
  const path = textAt(fields, 'relpath') || undefined;
  const method = textAt(fields, 'operation')?.toLowerCase() || undefined;
  if (basePathOrName === '') throw managementFailure('basepath is required.');
  if (path === undefined && method !== undefined) {
    throw managementFailure('When specifying an operation, the path is required.');
  }
  return await failingAs('API deletion failure: ', async () => {
    const [found] = await apisNamed(context.registry, identity, basePathOrName);
    if (found === undefined) throw managementFailure(noSuchApi(basePathOrName));
    const left = path === undefined ? undefined : await deleteEndpoint(context, identity, found, path, method);
    if (left === undefined || Object.keys(objectAt(left.swagger, 'paths') ?? {}).length === 0) {
      await context.registry.delete(found);
    }
    return {};
  });
};

async function deleteEndpoint(
  { registry }: ManagementContext,
  identity: Identity,
  { basePath }: ApiRecord,
  path: string,
  method: string | undefined,
): Promise<ApiRecord> {
  return await registry.put(identity, basePath, (before) => {
    if (before === undefined) throw managementFailure(noSuchApi(basePath));
    const problem = removeEndpoint(before.swagger, path, method);
    if (problem !== undefined) throw managementFailure(problem);
    return { swagger: before.swagger };
  });
}

/** The APIs with a base path (which begins with a slash) or with a name; '' selects all. */
async function apisNamed(registry: ApiRegistry, identity: Identity, basePathOrName: string): Promise<ApiRecord[]> {
  const apis = await registry.listOf(identity.namespace.name);
  if (basePathOrName === '') return apis;
  if (!basePathOrName.startsWith('/'))
    return apis.filter((api) => textAt(api.swagger, 'info', 'title') === basePathOrName);
  const wanted = basePathOrName.replace(/(.)\/+$/, '$1');
  return apis.filter((api) => api.basePath === wanted);
}

/** The document, if the gateway can serve it. Throws ApiError (502), SwaggerError. */
function checked(swagger: JsonObject, issuers: TokenIssuers): JsonObject {
  const size = sizeOf({ swagger, subscriptions: {} });
  // Before each path is looked at.
  if (size.paths > most.paths) throw managementFailure(tooLargeApis(size, most));
  const problem = pathParameterProblem(swagger);
  if (problem !== undefined) throw managementFailure(problem);
  compileApi(swagger, issuers);
  return swagger;
}

function described({ tenant, basePath, swagger }: ApiRecord, { gatewayUrl }: ManagementContext): JsonObject {
  const gwApiUrl = `${gatewayUrl() ?? ''}/api/${tenant}${basePath === '/' ? '' : basePath}`;
  return { namespace: 'Not Used', gwApiActivated: true, tenantId: 'Not Used', gwApiUrl, apidoc: swagger };
}

/** The rows selected by `skip` and `limit`. As in OpenWhisk's gateway, an invalid limit selects none. */
function page(apis: readonly ApiRecord[], fields: JsonObject): readonly ApiRecord[] {
  const count = (name: string): number | undefined => {
    const value = fields[name];
    return value === undefined || value === '' || value === 'undefined' ? undefined : Number(value);
  };
  const skip = count('skip') ?? 0;
  const limit = count('limit') ?? apis.length;
  if (!(limit >= 1)) return [];
  const from = skip > 0 ? Math.floor(skip) : 0;
  return apis.slice(from, from + Math.floor(limit));
}

async function failingAs(prefix: string, run: () => Promise<JsonObject>): Promise<JsonObject> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof SwaggerError) throw managementFailure(prefix + notConfigured(error.message));
    if (isApiError(error)) throw managementFailure(prefix + error.message);
    throw error;
  }
}

/** Most keys of one API, which all stand in its document. */
const maxSubscriptions = 1000;

const keyPattern = /^[\x21-\x7e]{8,256}$/;

/** Subscribes a client to an API, by its id alone or with a secret. A repeated call replaces the secret. */
export const createSubscription: ManagementOperation = async ({ registry }, { fields, identity }) => {
  const caller = known(identity);
  const api = await apiOf(registry, caller, fields);
  const clientId = keyField(fields, 'client_id');
  const secret = fields.client_secret === undefined ? undefined : keyField(fields, 'client_secret');
  const subscription: Subscription = secret === undefined ? {} : { secretHash: hashOfSecret(secret) };
  await registry.put(caller, api.basePath, (before) => {
    if (before === undefined) throw managementFailure(noSuchApi(api.basePath));
    const subscriptions = { ...before.subscriptions, [clientId]: subscription };
    if (Object.keys(subscriptions).length > maxSubscriptions) {
      throw managementFailure(tooManySubscriptions(maxSubscriptions));
    }
    return { subscriptions };
  });
  return { message: `Subscription '${clientId}' created for API '${api.artifactId}'` };
};

/** The ids of an API's clients. */
export const getSubscriptions: ManagementOperation = async ({ registry }, { fields, identity }) => {
  const api = await apiOf(registry, known(identity), fields);
  return { subscriptions: Object.keys(api.subscriptions) };
};

/** Deletes a client's subscription. */
export const deleteSubscription: ManagementOperation = async ({ registry }, { fields, identity }) => {
  const caller = known(identity);
  const api = await apiOf(registry, caller, fields);
  const clientId = textAt(fields, 'client_id') ?? '';
  await registry.put(caller, api.basePath, (before) => {
    if (before === undefined || !Object.hasOwn(before.subscriptions, clientId)) {
      throw managementFailure(noSuchSubscription());
    }
    const left = Object.entries(before.subscriptions).filter(([id]) => id !== clientId);
    return { subscriptions: Object.fromEntries(left) };
  });
  return {};
};

function known(identity: Identity | undefined): Identity {
  if (identity === undefined) throw managementFailure('A valid auth key is required.');
  return identity;
}

async function apiOf(registry: ApiRegistry, identity: Identity, fields: JsonObject): Promise<ApiRecord> {
  const basePathOrName = textAt(fields, 'basepath') ?? '';
  if (basePathOrName === '') throw managementFailure('basepath is required.');
  const [api] = await apisNamed(registry, identity, basePathOrName);
  if (api === undefined) throw managementFailure(noSuchApi(basePathOrName));
  return api;
}

function keyField(fields: JsonObject, name: string): string {
  const value = textAt(fields, name);
  if (value === undefined || !keyPattern.test(value)) {
    throw managementFailure(`${name} must have 8 to 256 visible ASCII characters.`);
  }
  return value;
}

// The arguments of route management, and the checks of path parameters.

/** Arguments of createApi: a whole document, or one more endpoint. */
type CreateRequest =
  | { type: 'swagger'; swagger: JsonObject }
  | { type: 'endpoint'; basePath: string; apiName: string | undefined; endpoint: Endpoint };

const endpointFields = ['gatewayBasePath', 'gatewayPath', 'gatewayMethod'] as const;
const actionFields = ['backendMethod', 'backendUrl', 'namespace', 'name', 'authkey'] as const;

/** Reads the arguments of createApi; `_` is the caller's namespace. Throws ApiError (502) with OpenWhisk's texts. */
function readCreateRequest(fields: JsonObject, namespace: string): CreateRequest {
  if (isMissing(fields.apidoc)) throw managementFailure('apidoc is required.');
  const apidoc = parse(fields.apidoc, {
    unreadable: 'apidoc field cannot be parsed. Ensure it is valid JSON.',
    wrongType: (type) => `apidoc field is of type ${type} and should be a JSON object or a JSON string.`,
  });
  if (isMissing(apidoc.namespace)) throw managementFailure('apidoc is missing the namespace field');
  if (!isMissing(apidoc.swagger)) return { type: 'swagger', swagger: readSwagger(apidoc) };
  for (const field of endpointFields) {
    if (isMissing(apidoc[field])) throw managementFailure(`apidoc is missing the ${field} field`);
  }
  if (isMissing(apidoc.action)) throw managementFailure('apidoc is missing the action field.');
  for (const field of actionFields) {
    if (isMissing(valueAt(apidoc.action, field))) throw managementFailure(`action is missing the ${field} field.`);
  }
  const text = (...keys: string[]): string => textField(apidoc, ...keys);
  const secureKey = valueAt(apidoc.action, 'secureKey');
  const owner = text('action', 'namespace');
  const endpoint: Endpoint = {
    path: text('gatewayPath'),
    method: text('gatewayMethod'),
    action: {
      name: text('action', 'name'),
      namespace: owner === '_' ? namespace : owner,
      host: hostOf(text('action', 'backendUrl')),
      ...((typeof secureKey === 'number' || (typeof secureKey === 'string' && secureKey !== '')) && { secureKey }),
    },
    ...(apidoc.pathParameters !== undefined && { parameters: apidoc.pathParameters }),
    responseType: textAt(fields, 'responsetype') || 'json',
  };
  return { type: 'endpoint', basePath: text('gatewayBasePath'), apiName: textAt(apidoc, 'apiName'), endpoint };
}

function readSwagger(apidoc: JsonObject): JsonObject {
  if (!isMissing(apidoc.gatewayBasePath)) {
    throw managementFailure('swagger and gatewayBasePath are mutually exclusive and cannot be specified together.');
  }
  const swagger = parse(apidoc.swagger, {
    unreadable: 'swagger field cannot be parsed. Ensure it is valid JSON.',
    wrongType: (type) => `swagger field is ${type} and should be an object or a JSON string.`,
  });
  for (const field of ['basePath', 'paths', 'info']) {
    if (isMissing(swagger[field])) throw managementFailure(`swagger is missing the ${field} field.`);
  }
  return swagger;
}

/** Reads an object, or the JSON of one. */
function parse(
  value: JsonValue | undefined,
  problems: { unreadable: string; wrongType: (type: string) => string },
): JsonObject {
  let parsed = value;
  if (typeof value === 'string') {
    try {
      parsed = JSON.parse(value) as JsonValue;
    } catch {
      throw managementFailure(problems.unreadable);
    }
  }
  if (isJsonObject(parsed)) return parsed;
  throw managementFailure(problems.wrongType(Array.isArray(parsed) ? 'array' : typeof parsed));
}

function isMissing(value: JsonValue | undefined): boolean {
  return value === undefined || value === null || value === '' || value === false || value === 0;
}

function textField(apidoc: JsonObject, ...keys: string[]): string {
  const value = textAt(apidoc, ...keys);
  if (value === undefined) throw managementFailure(`The field ${keys.join('.')} should be a string.`);
  return value;
}

/** `https://host` of a web action's URL; the rest is ignored. */
function hostOf(url: string): string {
  const host = /^(https?:\/\/[^?#]+?)\/api\/v\d+\/web\//.exec(url)?.[1];
  if (host !== undefined) return host;
  throw managementFailure(`API creation failure: API swagger generation error: '${url}' is no URL of a web action`);
}

/** Names of segments in braces: `/books/{isbn}` → `isbn`. */
function pathParameters(path: string): string[] {
  return path.split('/').flatMap((segment) => /^\{(.+)\}$/.exec(segment)?.[1] ?? []);
}

/**
 * The fault of a document's path parameters, or undefined. An action sees path parameters only in the path of its call. Its
 * URL therefore needs extension `.http` and must take the path.
 */
function pathParameterProblem(swagger: JsonObject): string | undefined {
  const basePath = textAt(swagger, 'basePath') ?? '';
  if (pathParameters(basePath).length > 0) {
    return `The base path (${basePath}) cannot have parameters. Only the relative path supports path parameters.`;
  }
  const targets = targetUrls(swagger);
  for (const [path, operations] of Object.entries(objectAt(swagger, 'paths') ?? {})) {
    const names = pathParameters(path);
    if (names.length === 0 || !isJsonObject(operations)) continue;
    const shared = objectsAt(operations, 'parameters');
    for (const [method, operation] of Object.entries(operations)) {
      if (method === 'parameters') continue;
      const problem = operationProblem(path, names, operation, shared, targets);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

function operationProblem(
  path: string,
  names: readonly string[],
  operation: JsonValue,
  shared: readonly JsonObject[],
  targets: ReadonlyMap<string, string>,
): string | undefined {
  const url = textAt(operation, 'x-openwhisk', 'url');
  if (url !== undefined && !url.endsWith('.http')) {
    return "The action must use a response type of '.http' in order to receive the path parameters.";
  }
  const operationId = textAt(operation, 'operationId') ?? '';
  const target = targets.get(operationId);
  if (target !== undefined && !target.endsWith('.http$(request.path)')) {
    return `The target-url for operationId '${operationId}' must end in '$(request.path)' in order for actions to receive the path parameters.`;
  }
  const described = [...shared, ...objectsAt(operation, 'parameters')];
  const missing = names.find((name) => !described.some((parameter) => parameter.name === name));
  return missing === undefined
    ? undefined
    : `The parameter '${missing}' defined in path '${path}' does not match any of the parameters defined for the path in the swagger file.`;
}

function targetUrls(swagger: JsonObject): Map<string, string> {
  const targets = new Map<string, string>();
  for (const policy of objectsAt(swagger, configurationKey(swagger), 'assembly', 'execute')) {
    for (const one of objectsAt(policy, 'operation-switch', 'case')) {
      const url = objectsAt(one, 'execute')
        .map((step) => textAt(step, 'invoke', 'target-url'))
        .find((found) => found !== undefined);
      const operations = valueAt(one, 'operations');
      if (url === undefined || !Array.isArray(operations)) continue;
      for (const operation of operations) if (typeof operation === 'string') targets.set(operation, url);
    }
  }
  return targets;
}
