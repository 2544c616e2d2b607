import { valueOf } from '../../args/parameters.js';
import { encodePath } from '../../client/api-host.js';
import { argumentError, messageOf, wrapError } from '../../errors.js';
import { asMap, asText, type Json, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { checkArgs, type Command, type CommandContext } from '../command.js';
import { annotationsOf } from '../lists.js';
import { parseRoute, type Route } from './arguments.js';
import { apiError, callGateway, checkApi, operationsOf } from './gateway.js';
import { readSwagger } from './swagger.js';

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
  printCreated(`${trimSlash(basePath)}${path}`, verb, full, `${trimSlash(urlOf(api))}${path}`);
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
    printCreated(`${basePath}${path}`, verb, action, `${trimSlash(urlOf(api))}${path}`);
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

const urlOf = (api: JsonMap): string => asText(api.get('gwApiUrl'));
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
