import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { objectAt, objectsAt, textAt, valueAt } from './json-path.js';
import { configurationKey } from './swagger-edit.js';

/** Names in braces that are a whole segment: `/books/{isbn}` → `isbn`. */
export function pathParameters(path: string): string[] {
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
