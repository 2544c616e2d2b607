import { managementFailure } from '@gpuwhisk/common/gateway-errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { textAt, valueAt } from './json-path.js';
import type { Endpoint } from './swagger-edit.js';

/** What a call of createApi asks for: a whole document, or one endpoint more. */
export type CreateRequest =
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
