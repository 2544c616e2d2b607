import { apiError, apisOf, callGateway, checkApi, operationsOf, type Operation } from '../../client/gateway.js';
import { checkArgs, pageFlags, type Command, type CommandContext } from '../../command.js';
import { wrapError, WskError } from '../../errors.js';
import { stringifyYaml } from '../../files.js';
import { asMap, asText, type Json } from '../../json/json.js';
import { apiShape, conform } from '../../shapes.js';
import { stdout } from '../../terminal.js';
import { checkPath, checkVerb, createCommand } from './create.js';

async function get({ args, client, flags, settings }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'An API base path or API name is required.');
  const format = flags.text('format');
  if (!['json', 'yaml'].includes(format.toLowerCase())) throw new WskError(`Invalid format type: ${format}`);
  const basepath = args[0] ?? '';
  let answer: Json;
  try {
    answer = await callGateway(client, settings, 'GET', { basepath });
  } catch (error) {
    throw apiError(error, `Unable to get API '${basepath}'`);
  }
  const [api] = apisOf(answer);
  const whole = api && conform(api, apiShape);
  const shown = flags.bool('full') ? whole : whole?.get('apidoc');
  if (!shown) throw new WskError(`API does not exist for basepath ${basepath}`);
  if (format.toLowerCase() === 'json') stdout.printJson(shown);
  else stdout.print(`${await stringifyYaml(asMap(shown))}\n`);
}

/** `wsk api get`. */
const getCommand: Command = {
  name: 'get',
  argsUsage: 'BASE_PATH | API_NAME',
  summary: 'get API details',
  flags: [
    {
      name: 'format',
      type: 'string',
      default: 'json',
      help: 'Specify the API output `TYPE`, either json or yaml',
    },
    { name: 'full', short: 'f', type: 'bool', help: 'display full API configuration details' },
  ],
  run: get,
};

const maxActionWidth = 40;
const maxNameWidth = 30;

async function list(context: CommandContext): Promise<void> {
  const { args, flags } = context;
  checkArgs(args, 0, 3, 'Optional parameters are: API base path (or API name), API relative path and operation.');
  const operations = args.length === 0 ? await all(context) : await some(context);
  if (flags.bool('name-sort')) operations.sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
  stdout.print(`${stdout.ok} APIs\n${flags.bool('full') ? described(operations) : table(operations)}`);
}

async function all({ client, flags, settings }: CommandContext): Promise<Operation[]> {
  const page = { limit: flags.int('limit'), skip: flags.int('skip') };
  try {
    const apis = apisOf(await callGateway(client, settings, 'GET', page)).map(checkApi);
    return apis.flatMap((api) => operationsOf(api));
  } catch (error) {
    throw apiError(error, 'Unable to obtain the API list');
  }
}

async function some({ args, client, settings }: CommandContext): Promise<Operation[]> {
  const [basepath, path, verb] = args;
  const relpath = path === undefined ? undefined : checkPath(path);
  const operation = verb === undefined ? undefined : checkVerb(verb);
  try {
    const answer = await callGateway(client, settings, 'GET', { basepath, relpath, operation });
    return apisOf(answer).flatMap((api) => operationsOf(api, relpath, operation));
  } catch (error) {
    throw wrapError(error, 'Unable to obtain the API list');
  }
}

const basePathOf = ({ api }: Operation): string => asText(asMap(api.get('apidoc')).get('basePath'));
const nameOf = ({ api }: Operation): string => asText(asMap(asMap(api.get('apidoc')).get('info')).get('title'));
const operationUrl = ({ api, path }: Operation): string => `${asText(api.get('gwApiUrl')).replace(/\/$/, '')}${path}`;
const sortKey = (one: Operation): string => `${basePathOf(one)}${one.path}${one.verb}`.toLowerCase();

function table(operations: Operation[]): string {
  const titles = ['Action', 'Verb', 'API Name', 'URL'];
  if (operations.length === 0) return `${stdout.bold(row(titles, 30, 20))}\n`;
  const actionWidth = Math.min(maxActionWidth, Math.max(6, ...operations.map(({ action }) => action.length)));
  const nameWidth = Math.min(maxNameWidth, Math.max(8, ...operations.map((one) => nameOf(one).length)));
  const rows = operations.map((one) => [
    one.action.slice(0, actionWidth),
    one.verb,
    nameOf(one).slice(0, nameWidth),
    operationUrl(one),
  ]);
  const lines = rows.map((cells) => `${row(cells, actionWidth, nameWidth + 1)}\n`);
  return `${stdout.bold(`${row(titles, actionWidth, nameWidth + 1)}\n`)}${lines.join('')}`;
}

function row([action = '', verb = '', name = '', url = '']: string[], actionWidth: number, nameWidth: number): string {
  return `${action.padEnd(actionWidth)} ${verb.padStart(7)} ${name.padStart(nameWidth)}  ${url}`;
}

function described(operations: Operation[]): string {
  if (operations.length === 0) return '\n';
  const lines = operations.map((one) => [
    `Action: ${one.action}`,
    `   API Name: ${nameOf(one)}`,
    `   Base path: ${basePathOf(one)}`,
    `   Path: ${one.path}`,
    `   Verb: ${one.verb}`,
    `   URL: ${operationUrl(one)}\n`,
  ]);
  return lines.map((of) => of.join('\n')).join('');
}

/** `wsk api list`. */
const listCommand: Command = {
  name: 'list',
  argsUsage: '[[BASE_PATH | API_NAME] [API_PATH [API_VERB]]',
  summary: 'list APIs',
  flags: [
    { name: 'full', short: 'f', type: 'bool', help: 'display full description of each API' },
    ...pageFlags('actions'),
    {
      name: 'name-sort',
      short: 'n',
      type: 'bool',
      help: 'sorts a list alphabetically by order of [BASE_PATH | API_NAME], API_PATH, then API_VERB; only applicable within the limit/skip returned entity block',
    },
  ],
  run: list,
};

async function remove({ args, client, settings }: CommandContext): Promise<void> {
  const optional = 'An optional API relative path and operation may also be provided.';
  checkArgs(args, 1, 3, `An API base path or API name is required.  ${optional}`);
  const [basepath = '', path, verb] = args;
  const relpath = path === undefined ? undefined : checkPath(path);
  const operation = verb === undefined ? undefined : checkVerb(verb);
  try {
    await callGateway(client, settings, 'DELETE', { basepath, relpath, operation });
  } catch (error) {
    throw apiError(error, 'Unable to delete API');
  }
  const part = [relpath, operation].filter((word) => word !== undefined).join(' ');
  stdout.print(`${stdout.ok} deleted ${part === '' ? `API ${basepath}` : `${part} from ${basepath}`}\n`);
}

/** `wsk api`. */
export const apiCommands: Command[] = [
  createCommand,
  {
    name: 'delete',
    argsUsage: 'BASE_PATH | API_NAME [API_PATH [API_VERB]]',
    summary: 'delete an API',
    flags: [],
    run: remove,
  },
  getCommand,
  listCommand,
];
