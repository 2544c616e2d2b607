import { resolve } from 'node:path';
import { valueOf } from '../../args/parameters.js';
import { parseQualifiedName, type QualifiedName } from '../../args/qualified-name.js';
import { encodePath } from '../../client/api-host.js';
import type { Client } from '../../client/client.js';
import { usageError, wrapError } from '../../errors.js';
import { writeNewFile } from '../../files.js';
import { asMap, asText, type Json, type JsonMap } from '../../json/json.js';
import { actionShape, conform, hasMember, memberOf } from '../../shapes.js';
import { stdout } from '../../terminal.js';
import { checkArgs, type Command, type CommandContext } from '../command.js';
import { annotationsOf } from '../lists.js';
import { summaryOf } from '../summary.js';
import { extensionOf } from './definition.js';

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
export const getCommand: Command = {
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
