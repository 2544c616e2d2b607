// The arguments of route management, and the checks of path parameters.
import { managementFailure } from '@gpuwhisk/common/gateway-errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { textAt, valueAt, objectAt, objectsAt, configurationKey } from './swagger-document.js';
import type { Endpoint } from './swagger-document.js';

/** A call of createApi: a whole document, or one endpoint more. */
type CreateRequest =
  | { type: 'swagger'; swagger: JsonObject }
  | { type: 'endpoint'; basePath: string; apiName: string | undefined; endpoint: Endpoint };

const endpointFields = ['gatewayBasePath', 'gatewayPath', 'gatewayMethod'] as const;
const actionFields = ['backendMethod', 'backendUrl', 'namespace', 'name', 'authkey'] as const;

/** Reads the arguments of createApi; `_` is the caller's namespace. Throws ApiError (502) with OpenWhisk's texts. */
export function readCreateRequest(fields: JsonObject, namespace: string): CreateRequest {
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

/** An object, or the JSON of one. */
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

/** `https://host` of a web action's URL; only that is taken from it. */
function hostOf(url: string): string {
  const host = /^(https?:\/\/[^?#]+?)\/api\/v\d+\/web\//.exec(url)?.[1];
  if (host !== undefined) return host;
  throw managementFailure(`API creation failure: API swagger generation error: '${url}' is no URL of a web action`);
}

/** Names in braces that are a whole segment: `/books/{isbn}` → `isbn`. */
function pathParameters(path: string): string[] {
  return path.split('/').flatMap((segment) => /^\{(.+)\}$/.exec(segment)?.[1] ?? []);
}

/**
 * What is wrong with the path parameters of a document, undefined where nothing is: actions see them only in the path
 * that they are called with, so their URL must have extension `.http` and take the path.
 */
export function pathParameterProblem(swagger: JsonObject): string | undefined {
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
