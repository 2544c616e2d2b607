import { resolve } from 'node:path';
import { annotationsOf, mergeObjects, valueOf } from '../../args/parameters.js';
import { ownNamespace, parseQualifiedName, type QualifiedName } from '../../args/qualified-name.js';
import { InvocationError } from '../../client/client.js';
import { encodePath, query } from '../../client/transport.js';
import type { Client } from '../../client/client.js';
import {
  checkArgs,
  nameSortFlag,
  pageFlags,
  parameterFlags,
  type Command,
  type CommandContext,
} from '../../command.js';
import { usageError, wrapError } from '../../errors.js';
import { writeNewFile } from '../../files.js';
import { asMap, asText, sortKeys, type Json, type JsonMap } from '../../json/json.js';
import { actionShape, conform, hasMember, memberOf } from '../../shapes.js';
import { stderr, stdout, type Printer } from '../../terminal.js';
import { listFormats, printList, summaryOf } from '../entities.js';
import { createCommand, extensionOf, updateCommand } from './create.js';

async function get({ args, client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 1, 2, 'An action name is required.');
  const field = flags.bool('url') || flags.bool('summary') ? undefined : args[1];
  if (field !== undefined && !hasMember(actionShape, field)) throw usageError(`Invalid field filter '${field}'.`);
  const name = parseQualifiedName(args[0] ?? '');
  const saves = flags.given('save') || flags.given('save-as');
  const action = await fetchAction(client, name, saves);
  const got = (shownName: string): string => `${stdout.ok} got action ${stdout.bold(shownName)}`;
  if (flags.bool('url')) {
    stdout.print(`${got(name.entity)}\n${urlOf(action, name, client)}\n`);
  } else if (flags.bool('summary')) {
    stdout.print(summaryOf('action', action));
  } else if (saves) {
    saveCode(action, flags.text('save-as'));
  } else if (field !== undefined) {
    stdout.print(`${got(name.path)}, displaying field ${stdout.bold(field)}\n`);
    stdout.printJson(memberOf(action, actionShape, field) ?? null);
  } else {
    stdout.print(`${got(name.path)}\n`);
    stdout.printJson(conform(action, actionShape));
  }
}

async function fetchAction(client: Client, { namespace, path }: QualifiedName, code: boolean): Promise<JsonMap> {
  try {
    return asMap(await client.get(namespace, `actions/${encodePath(path)}?code=${code}`));
  } catch (error) {
    throw wrapError(error, `Unable to get action '${path}'`, { showUsage: true });
  }
}

function urlOf(action: JsonMap, { packageName }: QualifiedName, client: Client): string {
  const [namespace = ''] = asText(action.get('namespace')).split('/');
  const web = valueOf(annotationsOf(action), 'web-export') === true;
  const parts = web
    ? ['web', namespace, packageName || 'default', asText(action.get('name'))]
    : ['namespaces', namespace, 'actions', ...(packageName ? [packageName] : []), asText(action.get('name'))];
  return [client.base, client.apiVersion, ...parts.map(encodeURIComponent)].join('/');
}

function saveCode(action: JsonMap, saveAs: string): void {
  const exec = asMap(action.get('exec'));
  const [family = ''] = asText(exec.get('kind')).split(':');
  const code = exec.get('code');
  const binary = exec.get('binary') === true;
  if (family === 'blackbox' && code === undefined && !binary) throw usageError('Cannot save Docker images');
  if (family === 'sequence') throw usageError('Cannot save action sequences');
  const file = saveAs || `${asText(action.get('name'))}${extensionOf(family, binary)}`;
  writeNewFile(file, decode(code, binary));
  stdout.print(`${stdout.ok} saved action code to ${stdout.bold(resolve(file))}\n`);
}

function decode(code: Json | undefined, binary: boolean): Buffer {
  return Buffer.from(asText(code), binary ? 'base64' : 'utf8');
}

/** `wsk action get`. */
const getCommand: Command = {
  name: 'get',
  argsUsage: 'ACTION_NAME [FIELD_FILTER | --summary | --url]',
  summary: 'get action',
  flags: [
    { name: 'save', type: 'bool', help: 'save action code to file corresponding with action name' },
    { name: 'save-as', type: 'string', help: 'file to save action code to' },
    {
      name: 'summary',
      short: 's',
      type: 'bool',
      help: 'summarize action details; parameters with prefix "*" are bound, "**" are bound and finalized',
    },
    { name: 'url', short: 'r', type: 'bool', help: 'get action url' },
  ],
  run: get,
};

async function invoke({ args, client, flags, pairs }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'An action name is required.');
  const name = parseQualifiedName(args[0] ?? '');
  const parameters = sortKeys(mergeObjects(pairs.parameters, 'parameter'));
  const result = flags.bool('result');
  const blocking = result || flags.bool('blocking');
  try {
    const answer = await client.invoke(name.namespace, `actions/${encodePath(name.path)}`, parameters, {
      blocking,
      result,
    });
    if (!result) printInvoked(stdout, name, answer);
    if (blocking) stdout.printJson(sortKeys(answer));
  } catch (error) {
    if (blocking && error instanceof InvocationError) printUnsuccessful(error, name, result);
    throw blocking && error instanceof InvocationError
      ? error
      : wrapError(error, `Unable to invoke action '${name.path}'`, { showUsage: true });
  }
}

/**
 * Prints the outcome of an unsuccessful invocation to stderr, so that stdout holds results only. With `recordOnly` the
 * line before the record is left out.
 */
export function printUnsuccessful(error: InvocationError, name: QualifiedName, recordOnly: boolean): void {
  if (error.outcome === 'still running') {
    printInvoked(stderr, name, error.answer, ', but the request has not yet finished,');
    return;
  }
  if (!recordOnly) printInvoked(stderr, name, error.answer);
  stderr.printJson(sortKeys(withoutHead(error.answer)));
}

const oversize =
  /^(The action produced a response that exceeded the allowed length: .*? bytes\.) The truncated response was: /;

const resultSetting = '(setting: limits.maxResultBytes; limit of the namespace: maxPayloadSize)';

/** A failed answer without the beginning of a result that was too long. */
function withoutHead(answer: Json): Json {
  if (!(answer instanceof Map)) return answer;
  const copy = new Map(answer);
  for (const key of ['response', 'result']) {
    const inner = copy.get(key);
    if (inner instanceof Map) copy.set(key, withoutHead(inner));
  }
  const [, text] = oversize.exec(asText(copy.get('error'))) ?? [];
  if (text !== undefined) copy.set('error', `${text} ${resultSetting} wsk activation result shows its beginning.`);
  return copy;
}

/** Prints `ok: invoked /ns/name with id ...`. */
export function printInvoked(printer: Printer, name: QualifiedName, answer: Json, remark = ''): void {
  const id = printer.bold(asText(asMap(answer).get('activationId')));
  const action = `/${printer.bold(name.namespace)}/${printer.bold(name.path)}`;
  printer.print(`${printer.ok} invoked ${action}${remark} with id ${id}\n`);
}

/** `wsk action invoke`. */
const invokeCommand: Command = {
  name: 'invoke',
  argsUsage: 'ACTION_NAME',
  summary: 'invoke action',
  flags: [
    { name: 'blocking', short: 'b', type: 'bool', help: 'blocking invoke' },
    ...parameterFlags,
    {
      name: 'result',
      short: 'r',
      type: 'bool',
      help: 'blocking invoke; show only activation result (unless there is a failure)',
    },
  ],
  run: invoke,
};

async function list({ args, client, flags }: CommandContext): Promise<void> {
  checkArgs(args, 0, 1, 'An optional namespace is the only valid argument.');
  const { namespace, path } =
    args[0] === undefined ? { namespace: ownNamespace, path: '' } : parseQualifiedName(args[0]);
  const options = query({ limit: flags.int('limit'), skip: flags.int('skip') });
  const collection = path === '' ? 'actions' : `actions/${encodePath(path)}/`;
  let actions: Json;
  try {
    actions = await client.get(namespace, `${collection}${options}`);
  } catch (error) {
    const shown = namespace === ownNamespace ? 'default' : namespace;
    throw wrapError(error, `Unable to obtain the list of actions for namespace '${shown}'`, { showUsage: true });
  }
  printList(actions, listFormats.actions, flags.bool('name-sort'));
}

async function remove({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'An action name is required.');
  const { namespace, path } = parseQualifiedName(args[0] ?? '');
  try {
    await client.delete(namespace, `actions/${encodePath(path)}`);
  } catch (error) {
    throw wrapError(error, `Unable to delete action '${path}'`, { showUsage: true });
  }
  stdout.print(`${stdout.ok} deleted action ${stdout.bold(path)}\n`);
}

/** `wsk action list`. */
const listCommand: Command = {
  name: 'list',
  argsUsage: '[ NAMESPACE | PACKAGE_NAME ]',
  summary: 'list all actions in a namespace or actions contained in a package',
  flags: [...pageFlags('actions'), nameSortFlag],
  run: list,
};

/** `wsk action delete`. */
const deleteCommand: Command = {
  name: 'delete',
  argsUsage: 'ACTION_NAME',
  summary: 'delete action',
  flags: [],
  run: remove,
};

/** `wsk action`. */
export const actionCommands: Command[] = [
  createCommand,
  deleteCommand,
  getCommand,
  invokeCommand,
  listCommand,
  updateCommand,
];
