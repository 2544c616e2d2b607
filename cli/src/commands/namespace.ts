import { ownNamespace } from '../args/qualified-name.js';
import { query } from '../client/transport.js';
import type { Client } from '../client/client.js';
import { checkArgs, nameSortFlag, type Command, type CommandContext } from '../command.js';
import { wrapError } from '../errors.js';
import { asList, asText, type Json } from '../json/json.js';
import { stdout } from '../terminal.js';
import { listFormats, printList } from './entities.js';
import { withStatus } from './rule.js';

async function listNamespaces({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  let names: Json;
  try {
    names = await client.namespaces();
  } catch (error) {
    throw wrapError(error, 'Unable to obtain the list of available namespaces');
  }
  stdout.print(
    `${stdout.bold('namespaces\n')}${asList(names)
      .map((name) => `${asText(name)}\n`)
      .join('')}`,
  );
}

async function listEntities({ args, client, flags }: CommandContext): Promise<void> {
  if (!(args.length === 1 && args[0] === '/_')) checkArgs(args, 0, 0, 'No arguments are required.');
  const actions = await all(client, 'actions');
  const packages = await all(client, 'packages');
  const triggers = await all(client, 'triggers');
  const rules = await withStatus(client, ownNamespace, await all(client, 'rules'));
  stdout.print(`Entities in namespace: ${stdout.bold('default')}\n`);
  const sorted = flags.bool('name-sort');
  printList(packages, listFormats.packages, sorted);
  printList(actions, listFormats.actions, sorted);
  printList(triggers, listFormats.triggers, sorted);
  printList(rules, listFormats.rules, sorted);
}

async function all(client: Client, collection: string): Promise<Json> {
  try {
    return await client.get(ownNamespace, `${collection}${query({ limit: 0, skip: 0 })}`);
  } catch (error) {
    throw wrapError(error, "Unable to obtain the list of entities for namespace 'default'");
  }
}

/** `wsk list`. */
export const listCommand: Command = {
  name: 'list',
  summary: 'list entities in the current namespace',
  flags: [nameSortFlag],
  run: listEntities,
};

/** `wsk namespace`. */
export const namespaceCommands: Command[] = [
  { name: 'list', summary: 'list available namespaces', flags: [], run: listNamespaces },
  {
    name: 'get',
    summary: 'get triggers, actions, and rules in the registry for namespace',
    flags: [nameSortFlag],
    run: listEntities,
  },
];
