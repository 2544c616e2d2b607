import { parseQualifiedName } from '../../args/qualified-name.js';
import type { FlagSpec } from '../../args/flags.js';
import { encodePath } from '../../client/api-host.js';
import { messageOf, WskError, wrapError } from '../../errors.js';
import type { Json, JsonMap } from '../../json/json.js';
import { actionShape, conform } from '../../shapes.js';
import { stdout } from '../../terminal.js';
import { annotationFlags, checkArgs, parameterFlags, type Command, type CommandContext } from '../command.js';
import { definitionFrom } from './definition.js';
import { withWebAnnotations } from './web.js';

const notFound = 404 - 256;

async function create(context: CommandContext): Promise<void> {
  checkArgs(context.args, 1, 2, 'An action name and code artifact are required.');
  await put(context, false);
  stdout.print(`${stdout.ok} created action ${stdout.bold(nameOf(context))}\n`);
}

async function update(context: CommandContext): Promise<void> {
  checkArgs(context.args, 1, 2, 'An action name is required. A code artifact is optional.');
  await put(context, true);
  stdout.print(`${stdout.ok} updated action ${stdout.bold(nameOf(context))}\n`);
}

function nameOf({ args }: CommandContext): string {
  return parseQualifiedName(args[0] ?? '').path;
}

async function put(context: CommandContext, overwrite: boolean): Promise<void> {
  const { namespace, path } = await asArgument(async () => parseQualifiedName(context.args[0] ?? ''));
  const action = await asArgument(async () => {
    const parsed = await definitionFrom(context, overwrite);
    const existing = overwrite ? await existingAction(context, namespace, path) : undefined;
    return withWebAnnotations(parsed, existing, context.flags);
  });
  const body = new Map<string, Json>([['namespace', namespace], ['name', path], ...action]);
  try {
    await context.client.put(
      namespace,
      `actions/${encodePath(path)}?overwrite=${overwrite}`,
      conform(body, actionShape),
    );
  } catch (error) {
    throw wrapError(error, `Unable to create action '${path}'`, { showUsage: true });
  }
}

async function existingAction(
  { client }: CommandContext,
  namespace: string,
  path: string,
): Promise<JsonMap | undefined> {
  try {
    return conform(await client.get(namespace, `actions/${encodePath(path)}?code=false`), actionShape);
  } catch (error) {
    if (error instanceof WskError && error.exitCode === notFound) return undefined;
    throw wrapError(error, `Unable to get action '${path}'`, { showUsage: true });
  }
}

/** Everything that goes wrong before the action is sent is reported as a mistake in the arguments. */
async function asArgument<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof WskError)) throw error;
    const { exitCode, showMessage } = error;
    throw new WskError(`Invalid argument(s). ${messageOf(error)}`, { exitCode, showMessage, showUsage: true });
  }
}

const flags: FlagSpec[] = [
  ...annotationFlags,
  {
    name: 'concurrency',
    short: 'c',
    type: 'int',
    default: 1,
    help: 'the maximum intra-container concurrent activation `LIMIT` for the action',
  },
  { name: 'copy', type: 'bool', help: 'treat ACTION as the name of an existing action' },
  { name: 'docker', type: 'string', help: 'use provided docker image (a path on DockerHub) to run the action' },
  { name: 'kind', type: 'string', help: 'the `KIND` of the action runtime (example: swift:default, nodejs:default)' },
  {
    name: 'logsize',
    short: 'l',
    type: 'int',
    default: 10,
    help: 'the maximum log size `LIMIT` in MB for the action',
  },
  {
    name: 'main',
    type: 'string',
    help: 'the name of the action entry point (function or fully-qualified method name when applicable)',
  },
  { name: 'memory', short: 'm', type: 'int', default: 256, help: 'the maximum memory `LIMIT` in MB for the action' },
  {
    name: 'native',
    type: 'bool',
    help: 'treat ACTION as native action (zip file provides a compatible executable to run)',
  },
  ...parameterFlags,
  { name: 'sequence', type: 'bool', help: 'treat ACTION as comma separated sequence of actions to invoke' },
  {
    name: 'timeout',
    short: 't',
    type: 'int',
    default: 60000,
    help: 'the timeout `LIMIT` in milliseconds after which the action is terminated',
  },
  {
    name: 'web',
    type: 'string',
    help: 'treat ACTION as a web action, a raw HTTP web action, or as a standard action; yes | true = web action, raw = raw HTTP web action, no | false = standard action',
  },
  {
    name: 'web-secure',
    type: 'string',
    help: 'secure the web action. where `SECRET` is true, false, or any string. Only valid when the ACTION is a web action',
  },
];

/** `wsk action create`. */
export const createCommand: Command = {
  name: 'create',
  argsUsage: 'ACTION_NAME ACTION',
  summary: 'create a new action',
  flags,
  run: create,
};

/** `wsk action update`. */
export const updateCommand: Command = {
  name: 'update',
  argsUsage: 'ACTION_NAME [ACTION]',
  summary: 'update an existing action, or create an action if it does not exist',
  flags: [
    ...flags,
    {
      name: 'del-annotation',
      type: 'strings',
      help: 'the list of annotations to be deleted from the action, e.g. --del-annotation key1 --del-annotation key2',
    },
  ],
  run: update,
};
