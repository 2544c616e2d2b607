import { annotationsOf, valueOf } from '../../args/parameters.js';
import { ownNamespace, parseQualifiedName, type QualifiedName } from '../../args/qualified-name.js';
import { encodePath } from '../../client/transport.js';
import {
  apiDocAction,
  apiDocument,
  apiError,
  callGateway,
  checkApi,
  operationsOf,
  pathParameters,
  readSwagger,
} from '../../client/gateway.js';
import { checkArgs, type Command, type CommandContext } from '../../command.js';
import { argumentError, exitCodes, messageOf, wrapError, WskError } from '../../errors.js';
import { asMap, asText, type Json, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';

const required =
  'Specify a swagger file or specify an API base path with an API path, an API verb, and an action name.';

async function create(context: CommandContext): Promise<void> {
  const { args, flags } = context;
  if (args.length === 0) {
    if (flags.text('config-file') === '') throw argumentError(`Invalid argument(s). ${required}`);
    return createFromSwagger(context, flags.text('config-file'));
  }
  checkArgs(args, 3, 4, required);
  let route: Route;
  try {
    route = parseRoute(context);
  } catch (error) {
    throw wrapError(error, 'Unable to parse api command arguments', { showUsage: true });
  }
  const secret = await secretOf(context, route);
  if (secret !== undefined) asMap(route.document.get('action')).set('secureKey', secret);
  const api = await insert(context, route.document);
  const { basePath, path, verb, action } = route;
  const full = `/${action.namespace}/${action.path}`;
  printCreated(`${trimSlash(basePath)}${path}`, verb, full, `${trimSlash(gatewayUrlOf(api))}${path}`);
}

async function createFromSwagger(context: CommandContext, file: string): Promise<void> {
  let swagger: string;
  try {
    swagger = await readSwagger(file);
  } catch (error) {
    throw wrapError(error, 'Unable to parse swagger file', { showUsage: true });
  }
  const api = await insert(
    context,
    new Map([
      ['namespace', '_'],
      ['swagger', swagger],
    ]),
  );
  const basePath = trimSlash(asText(asMap(api.get('apidoc')).get('basePath')));
  for (const { path, verb, action } of operationsOf(api)) {
    printCreated(`${basePath}${path}`, verb, action, `${trimSlash(gatewayUrlOf(api))}${path}`);
  }
}

async function insert({ client, flags, settings }: CommandContext, apidoc: JsonMap): Promise<JsonMap> {
  const which = { responsetype: flags.text('response-type') };
  try {
    return checkApi(
      asMap(await callGateway(client, settings, 'POST', which, new Map<string, Json>([['apidoc', apidoc]]))),
    );
  } catch (error) {
    throw apiError(error, 'Unable to create API');
  }
}

/** The secret of a web action that has one. @throws WskError if it is no web action. */
async function secretOf({ client }: CommandContext, { action }: Route): Promise<Json | undefined> {
  const full = `/${action.namespace}/${action.path}`;
  let annotations: JsonMap[];
  try {
    const found = await client.get(action.namespace, `actions/${encodePath(action.path)}?code=false`);
    annotations = annotationsOf(asMap(found));
  } catch (error) {
    throw argumentError(`Unable to get action '${full}': ${messageOf(error)}`);
  }
  if (valueOf(annotations, 'web-export') !== true) {
    const advice = `Issue 'wsk action update "${full}" --web true' to convert the action to a web action.`;
    throw argumentError(`Action '${full}' is not a web action. ${advice}`);
  }
  return valueOf(annotations, 'require-whisk-auth') ?? undefined;
}

function printCreated(path: string, verb: string, action: string, url: string): void {
  const forAction = action === '' ? '' : ` for action ${stdout.bold(action)}`;
  stdout.print(`${stdout.ok} created API ${path} ${verb}${forAction}\n${url}\n`);
}

const gatewayUrlOf = (api: JsonMap): string => asText(api.get('gwApiUrl'));
const trimSlash = (text: string): string => text.replace(/\/$/, '');

/** `wsk api create`. */
export const createCommand: Command = {
  name: 'create',
  argsUsage: '([BASE_PATH] API_PATH API_VERB ACTION] | --config-file CFG_FILE) ',
  summary: 'create a new API',
  flags: [
    {
      name: 'apiname',
      short: 'n',
      type: 'string',
      help: 'Friendly name of the API; ignored when CFG_FILE is specified (default BASE_PATH)',
    },
    {
      name: 'config-file',
      short: 'c',
      type: 'string',
      help: '`CFG_FILE` containing API configuration in swagger JSON format',
    },
    {
      name: 'response-type',
      type: 'string',
      default: 'json',
      help: 'Set the web action response `TYPE`. Possible values are html, http, json, text, svg',
    },
  ],
  run: create,
};

const verbs = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'];

/** The route that `api create [BASE_PATH] API_PATH API_VERB ACTION` describes. */
interface Route {
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

/** @throws WskError if an argument is invalid, or the arguments contradict each other. */
function parseRoute({ args, client, flags, settings }: CommandContext): Route {
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
