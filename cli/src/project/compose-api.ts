import { pathParameters } from '../commands/api/arguments.js';
import { asMap, type JsonMap } from '../json/json.js';
import type { Scope } from './compose.js';
import { setWeb } from './compose-action.js';
import { bareError, fileError } from './errors.js';
import { textOf } from './manifest.js';
import type { PlannedAction, PlannedApi, PlannedPackage } from './plan.js';

const verbs = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'];

/**
 * The routes that a package declares. Their actions become web actions, or with `--strict` must be.
 * @throws WskError for a route to an unknown action, an unknown method or a base path with more than one part.
 */
export function composeApis(declared: JsonMap, planned: PlannedPackage, scope: Scope): PlannedApi[] {
  const apis: PlannedApi[] = [];
  for (const [apiName, basePaths] of asMap(declared.get('apis'))) {
    for (const [basePath, paths] of asMap(basePaths)) {
      checkBasePath(basePath, scope);
      for (const [path, actions] of asMap(paths)) {
        for (const [actionName, method] of asMap(actions)) {
          const route = { apiName, basePath: withSlash(basePath), path: withSlash(path), actionName };
          apis.push(composeApi(route, asMap(method), planned, scope));
        }
      }
    }
  }
  return apis;
}

function composeApi(
  route: { apiName: string; basePath: string; path: string; actionName: string },
  method: JsonMap,
  planned: PlannedPackage,
  { file, strict, warn }: Scope,
): PlannedApi {
  const { apiName, basePath, path, actionName } = route;
  const action = planned.actions.get(actionName);
  if (!action) {
    const message = `Action/Sequence [${actionName}] is missing from manifest file, API [${apiName}] can only be created based on the action/sequence from manifest file. Please update manifest file to include [${actionName}] as a web action/sequence.\n`;
    throw fileError('ERROR_YAML_FILE_FORMAT_ERROR', file, message);
  }
  exportToWeb(apiName, action, strict, warn);
  const verb = textOf(method, 'method').toUpperCase();
  if (!verbs.includes(verb)) {
    const given = textOf(method, 'method');
    const message = `API [${basePath}${path}]: API gateway method [${given}]: API gateway supported methods [${verbs.join(', ')}]`;
    throw fileError('ERROR_YAML_FILE_FORMAT_ERROR', file, message);
  }
  let responseType = textOf(method, 'response');
  if (pathParameters(path).length > 0 && responseType !== 'http') {
    warn(
      `API [${apiName}] with path parameters [${path}] is required to have http as response type. Changing response type from [${responseType}] to http for [${apiName}].\n`,
    );
    responseType = 'http';
  }
  return { apiName, basePath, path, verb, packageName: planned.name, actionName, responseType };
}

function exportToWeb(apiName: string, action: PlannedAction, strict: boolean, warn: (message: string) => void): void {
  const isWeb = action.annotations.get('web-export');
  if (isWeb === true) return;
  const kind = action.isSequence ? 'sequence' : 'action';
  const title = action.isSequence ? 'Sequence' : 'Action';
  const problem = `${title} [${action.name}] is not a web ${kind}, API [${apiName}] can only be created using a web ${kind}.`;
  if (isWeb !== undefined || strict) throw bareError(`[ERROR_YAML_INVALID_API]: ${problem}\n`);
  warn(`${problem} Converting [${action.name}] to a web ${kind}.\n`);
  action.annotations = setWeb(action.annotations, true, false);
}

function checkBasePath(basePath: string, { file }: Scope): void {
  if (basePath !== '' && !basePath.replace(/^\//, '').includes('/')) return;
  const message = `API Gateway base path [${basePath}] is invalid. It has path parameters which is not supported, only relative path supports path parameters.`;
  throw fileError('ERROR_YAML_PARSER_ERROR', file, message);
}

const withSlash = (path: string): string => (path.startsWith('/') ? path : `/${path}`);
