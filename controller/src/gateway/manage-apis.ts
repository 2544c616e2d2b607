// The operations of route management: on APIs, and on the keys to them.
import type { Identity } from '@gpuwhisk/common/entities/identity';
import {
  SwaggerError,
  gatewayOff,
  managementFailure,
  noSuchApi,
  notConfigured,
  noSuchSubscription,
  tooManySubscriptions,
} from '@gpuwhisk/common/gateway-errors';
import { isApiError } from '@gpuwhisk/common/errors';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { ApiRecord, ApiRegistry, Subscription } from './api-registry.js';
import { compileApi, normalBasePath } from './compile-api.js';
import { objectAt, textAt, addEndpoint, newSwagger, removeEndpoint } from './swagger-document.js';
import { readCreateRequest, pathParameterProblem } from './management-arguments.js';
import type { TokenIssuers } from './api-policies.js';
import { hashOfSecret } from './api-policies.js';

/** Dependencies of route management's operations. */
export interface ManagementContext {
  registry: ApiRegistry;
  issuers: TokenIssuers;
  /** Where the gateway is reached from outside; undefined: there is none. */
  gatewayUrl: () => string | undefined;
}

/** One call of route management: query and body as one object, and who calls, if that is known. */
interface ManagementCall {
  fields: JsonObject;
  identity: Identity | undefined;
}

/** A call of route management. Throws ApiError (502). */
export type ManagementOperation = (context: ManagementContext, call: ManagementCall) => Promise<JsonObject>;

/** Makes an API or adds an endpoint to one; the answer describes the API. */
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

/** The namespace's APIs: all of them, or those with a base path or name. */
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

/** Deletes an API, one of its paths, or one operation of a path; an API without paths goes with its last one. */
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

/** The APIs with a base path (it begins with a slash) or with a name; '' gives all of them. */
async function apisNamed(registry: ApiRegistry, identity: Identity, basePathOrName: string): Promise<ApiRecord[]> {
  const apis = await registry.listOf(identity.namespace.name);
  if (basePathOrName === '') return apis;
  if (!basePathOrName.startsWith('/'))
    return apis.filter((api) => textAt(api.swagger, 'info', 'title') === basePathOrName);
  const wanted = basePathOrName.replace(/(.)\/+$/, '$1');
  return apis.filter((api) => api.basePath === wanted);
}

/** The document if the gateway can serve it. Throws ApiError (502), SwaggerError. */
function checked(swagger: JsonObject, issuers: TokenIssuers): JsonObject {
  const problem = pathParameterProblem(swagger);
  if (problem !== undefined) throw managementFailure(problem);
  compileApi(swagger, issuers);
  return swagger;
}

function described({ tenant, basePath, swagger }: ApiRecord, { gatewayUrl }: ManagementContext): JsonObject {
  const gwApiUrl = `${gatewayUrl() ?? ''}/api/${tenant}${basePath === '/' ? '' : basePath}`;
  return { namespace: 'Not Used', gwApiActivated: true, tenantId: 'Not Used', gwApiUrl, apidoc: swagger };
}

/** The rows that `skip` and `limit` ask for; as in OpenWhisk's gateway, an impossible limit leaves none. */
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

/** Keys that one API may have: they are part of its document. */
const maxSubscriptions = 1000;

const keyPattern = /^[\x21-\x7e]{8,256}$/;

/** Lets a client call an API: with its id alone, or with a secret too. A second call replaces the secret. */
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

/** Takes a client's access away. */
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
