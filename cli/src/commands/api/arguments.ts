import { ownNamespace, parseQualifiedName, type QualifiedName } from '../../args/qualified-name.js';
import { argumentError, exitCodes, WskError } from '../../errors.js';
import type { Json, JsonMap } from '../../json/json.js';
import type { CommandContext } from '../command.js';

const verbs = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'];

/** What `api create [BASE_PATH] API_PATH API_VERB ACTION` asks for. */
export interface Route {
  basePath: string;
  path: string;
  verb: string;
  action: QualifiedName;
  /** The `apidoc` of the request. */
  document: JsonMap;
}

/** The method in upper case. @throws WskError if there is no such method. */
export function checkVerb(verb: string): string {
  if (verbs.includes(verb.toUpperCase())) return verb.toUpperCase();
  throw argumentError(`'${verb}' is not a valid API verb.  Valid values are: [${verbs.join(' ')}]`);
}

/** @throws WskError unless the path begins with a slash. */
export function checkPath(path: string): string {
  if (!path.startsWith('/')) throw argumentError(`'${path}' must begin with '/'.`);
  return path;
}

/** @throws WskError if one of the arguments is no good, or they do not go together. */
export function parseRoute({ args, client, flags, settings }: CommandContext): Route {
  const [basePath = '', path = '', verbText = '', actionName = ''] = args.length > 3 ? args : ['/', ...args];
  const isName = !basePath.startsWith('/');
  if (pathParameters(basePath).length > 0) {
    const advice = 'Only the relative path supports path parameters.';
    throw argumentError(`The base path '${basePath}' cannot have parameters. ${advice}`);
  }
  checkPath(path);
  const parameters = pathParameters(path);
  if (parameters.length > 0 && flags.text('response-type') !== 'http') {
    throw argumentError("A response type of 'http' is required when using path parameters.");
  }
  const verb = checkVerb(verbText);
  const action = parseAction(actionName);
  const apiName = flags.text('apiname');
  if (apiName !== '' && isName) throw argumentError('An API name can only be specified once.');
  const backend = apiDocAction(action, backendUrl(client.base, action), verb, settings.auth);
  const document = apiDocument({ namespace: ownNamespace, apiName, basePath, path, verb, parameters, isName }, backend);
  return { basePath, path, verb, action, document };
}

function parseAction(name: string): QualifiedName {
  let action: QualifiedName;
  try {
    action = parseQualifiedName(name);
  } catch (error) {
    if (!(error instanceof WskError)) throw error;
    const message = `'${name}' is not a valid action name: A valid qualified name must be specified.`;
    throw new WskError(message, { exitCode: exitCodes.notAllowed, showUsage: true });
  }
  if (action.path === '') throw argumentError(`'${name}' is not a valid action name.`);
  return action;
}

function backendUrl(base: string, { namespace, packageName, entity }: QualifiedName): string {
  return `${base}/v1/web/${namespace}/${packageName || 'default'}/${entity}.http`;
}

/** The part of the `apidoc` that says what serves the route. */
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
    /** The base path is the name of an existing API. */
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
