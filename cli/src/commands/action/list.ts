import { ownNamespace, parseQualifiedName } from '../../args/qualified-name.js';
import { encodePath, query } from '../../client/api-host.js';
import { wrapError } from '../../errors.js';
import type { Json } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { checkArgs, nameSortFlag, pageFlags, type Command, type CommandContext } from '../command.js';
import { listFormats, printList } from '../lists.js';

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
export const listCommand: Command = {
  name: 'list',
  argsUsage: '[ NAMESPACE | PACKAGE_NAME ]',
  summary: 'list all actions in a namespace or actions contained in a package',
  flags: [...pageFlags('actions'), nameSortFlag],
  run: list,
};

/** `wsk action delete`. */
export const deleteCommand: Command = {
  name: 'delete',
  argsUsage: 'ACTION_NAME',
  summary: 'delete action',
  flags: [],
  run: remove,
};
