// Edits of an API's swagger document, and access to JSON by keys.
import { noSuchOperation, noSuchPath } from '@gpuwhisk/common/gateway-errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';

/** A path and method of an API, and the web action behind it. */
export interface Endpoint {
  path: string;
  method: string;
  action: {
    /** `name` or `package/name`. */
    name: string;
    namespace: string;
    /** `https://host`. */
    host: string;
    /** The secret that the action expects in header X-Require-Whisk-Auth. */
    secureKey?: string | number;
  };
  /** Swagger's description of the parameters in the path. */
  parameters?: JsonValue;
  /** Extension of the web action's URL: `json`, `http`, ... */
  responseType: string;
}

/** The document of a new API, without paths. */
export function newSwagger(basePath: string, name: string | undefined): JsonObject {
  return {
    swagger: '2.0',
    info: { title: name ?? basePath, version: '1.0.0' },
    basePath,
    paths: {},
    'x-ibm-configuration': { assembly: {}, cors: { enabled: true } },
  };
}

/** The document's key of the gateway's settings. */
export function configurationKey(swagger: JsonObject): 'x-gateway-configuration' | 'x-ibm-configuration' {
  return Object.hasOwn(swagger, 'x-gateway-configuration') ? 'x-gateway-configuration' : 'x-ibm-configuration';
}

/** Adds an endpoint to a document, or replaces the one at its path and method. */
export function addEndpoint(swagger: JsonObject, endpoint: Endpoint): void {
  const method = endpoint.method.toLowerCase();
  const { path, action, responseType } = endpoint;
  const operations = childObject(childObject(swagger, 'paths'), path);
  const replaced = textAt(operations, method, 'operationId');
  const operationId = replaced ?? freeOperationId(swagger, method, path);
  const { packageName, actionName } = splitName(action.name);
  const url = `${action.host}/api/v1/web/${action.namespace}/${packageName || 'default'}/${actionName}.${responseType}`;
  operations[method] = {
    operationId,
    ...(endpoint.parameters !== undefined && { parameters: endpoint.parameters }),
    'x-openwhisk': { url, namespace: action.namespace, package: packageName, action: actionName },
    responses: { default: { description: 'Default response' } },
  };
  const target = responseType === 'http' ? `${url}$(request.path)` : url;
  const execute: JsonValue[] = [{ invoke: { 'target-url': target, verb: 'keep' } }];
  if (action.secureKey !== undefined) {
    const set = 'message.headers.X-Require-Whisk-Auth';
    execute.push({ 'set-variable': { actions: [{ set, value: action.secureKey }] } });
  }
  const cases = childArray(operationSwitch(swagger), 'case');
  const at = cases.findIndex((one) => isCaseOf(one, operationId));
  cases.splice(at < 0 ? cases.length : at, at < 0 ? 0 : 1, { operations: [operationId], execute });
}

/** Removes an operation, or without a method the whole path. Returns the reason if it cannot, else undefined. */
export function removeEndpoint(swagger: JsonObject, path: string, method: string | undefined): string | undefined {
  const paths = objectAt(swagger, 'paths');
  const operations = objectAt(paths, path);
  if (method === undefined) {
    if (paths === undefined || operations === undefined) return noSuchPath(path);
    for (const one of Object.keys(operations)) removeCase(swagger, textAt(operations, one, 'operationId'));
    delete paths[path];
    return undefined;
  }
  if (paths === undefined || operations === undefined || !Object.hasOwn(operations, method)) {
    return noSuchOperation(path, method);
  }
  removeCase(swagger, textAt(operations, method, 'operationId'));
  delete operations[method];
  if (Object.keys(operations).length === 0) delete paths[path];
  return undefined;
}

/**
 * An unused operation id from the method and the words of the path: `get`, `/path/with/sub_paths` → `getPathWithSub_paths`.
 * Paths that differ only in other characters would share an id and its target, so that later ones get a number.
 */
function freeOperationId(swagger: JsonObject, method: string, path: string): string {
  const words = path.split(/[^0-9a-z_-]+/i).filter((word) => word !== '');
  const id = method + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase()).join('');
  const taken = new Set(
    Object.values(objectAt(swagger, 'paths') ?? {}).flatMap((operations) =>
      Object.keys(isJsonObject(operations) ? operations : {}).map((one) => textAt(operations, one, 'operationId')),
    ),
  );
  let free = id;
  for (let number = 2; taken.has(free); number++) free = `${id}_${number}`;
  return free;
}

function splitName(name: string): { packageName: string; actionName: string } {
  const segments = name.split('/').filter((segment) => segment !== '');
  return { packageName: segments.length > 1 ? (segments.at(-2) ?? '') : '', actionName: segments.at(-1) ?? '' };
}

function operationSwitch(swagger: JsonObject): JsonObject {
  const assembly = childObject(childObject(swagger, configurationKey(swagger)), 'assembly');
  const execute = childArray(assembly, 'execute');
  const found = execute.find((policy) => objectAt(policy, 'operation-switch') !== undefined);
  const holder: JsonObject = isJsonObject(found) ? found : {};
  if (found === undefined) execute.push(holder);
  return childObject(holder, 'operation-switch');
}

function isCaseOf(value: JsonValue, operationId: string): boolean {
  const operations = valueAt(value, 'operations');
  return Array.isArray(operations) && operations.length === 1 && operations[0] === operationId;
}

function removeCase(swagger: JsonObject, operationId: string | undefined): void {
  if (operationId === undefined) return;
  for (const policy of objectsAt(swagger, configurationKey(swagger), 'assembly', 'execute')) {
    const choice = objectAt(policy, 'operation-switch');
    const cases = valueAt(choice, 'case');
    if (choice !== undefined && Array.isArray(cases)) {
      choice.case = cases.filter((one) => !isCaseOf(one, operationId));
    }
  }
}

/** The value below `value` at these keys, or undefined. */
export function valueAt(value: JsonValue | undefined, ...keys: string[]): JsonValue | undefined {
  let found = value;
  for (const key of keys) found = isJsonObject(found) && Object.hasOwn(found, key) ? found[key] : undefined;
  return found;
}

/** As valueAt, but undefined unless the value is an object. */
export function objectAt(value: JsonValue | undefined, ...keys: string[]): JsonObject | undefined {
  const found = valueAt(value, ...keys);
  return isJsonObject(found) ? found : undefined;
}

/** As valueAt, but undefined unless the value is a string. */
export function textAt(value: JsonValue | undefined, ...keys: string[]): string | undefined {
  const found = valueAt(value, ...keys);
  return typeof found === 'string' ? found : undefined;
}

/** As valueAt, but the objects of an array; empty unless the value is an array. */
export function objectsAt(value: JsonValue | undefined, ...keys: string[]): JsonObject[] {
  const found = valueAt(value, ...keys);
  return Array.isArray(found) ? found.filter(isJsonObject) : [];
}

/** The object named `key` in `parent`; a missing one is added. */
function childObject(parent: JsonObject, key: string): JsonObject {
  const found = objectAt(parent, key);
  if (found !== undefined) return found;
  const made: JsonObject = {};
  parent[key] = made;
  return made;
}

/** The array named `key` in `parent`; a missing one is added. */
function childArray(parent: JsonObject, key: string): JsonValue[] {
  const found = valueAt(parent, key);
  if (Array.isArray(found)) return found;
  const made: JsonValue[] = [];
  parent[key] = made;
  return made;
}
