import { fullyQualified } from '../args/qualified-name.js';
import { encodePath } from '../client/transport.js';
import type { Client } from '../client/client.js';
import { checkArgs, nameSortFlag, pageFlags, type Command, type CommandContext } from '../command.js';
import { wrapError } from '../errors.js';
import { asList, asMap, asText, body, type Json, type JsonMap } from '../json/json.js';
import { ruleShape } from '../shapes.js';
import { stdout } from '../terminal.js';
import {
  list,
  listFormats,
  printDone,
  printEntity,
  read,
  remove,
  summaryFlag,
  targetOf,
  targetWithField,
  textOf,
  type EntityKind,
  type Target,
} from './entities.js';

/** Properties of rules, for the commands that all kinds of entities share. */
const rules: EntityKind = { noun: 'rule', collection: 'rules', shape: ruleShape, format: listFormats.rules };

/** `wsk rule create`. */
function create(context: CommandContext): Promise<void> {
  return put(context, false, 'create', 'created');
}

/** `wsk rule update`. */
function update(context: CommandContext): Promise<void> {
  return put(context, true, 'update', 'updated');
}

async function put({ args, client }: CommandContext, overwrite: boolean, verb: string, done: string): Promise<void> {
  checkArgs(args, 3, 3, 'A rule, trigger and action name are required.');
  const [ruleName = '', trigger = '', action = ''] = args;
  const { namespace, name, route } = targetOf(rules, ruleName);
  const rule = body({ name, status: '', trigger: fullyQualified(trigger), action: fullyQualified(action) });
  try {
    await client.put(namespace, `${route}?overwrite=${overwrite}`, rule);
  } catch (error) {
    throw wrapError(error, `Unable to ${verb} rule '${name}'`);
  }
  printDone(done, 'rule', name);
}

function onlyRule({ args }: CommandContext): Target {
  checkArgs(args, 1, 1, 'A rule name is required.');
  return targetOf(rules, args[0] ?? '');
}

async function setStatus({ client }: CommandContext, target: Target, status: 'active' | 'inactive'): Promise<void> {
  try {
    await client.post(target.namespace, target.route, body({ status, trigger: null, action: null }));
  } catch (error) {
    throw wrapError(error, `Unable to ${status === 'active' ? 'enable' : 'disable'} rule '${target.name}'`);
  }
}

/** `wsk rule enable`. */
async function enable(context: CommandContext): Promise<void> {
  const target = onlyRule(context);
  await setStatus(context, target, 'active');
  printDone('enabled', 'rule', target.name);
}

/** `wsk rule disable`. */
async function disable(context: CommandContext): Promise<void> {
  const target = onlyRule(context);
  await setStatus(context, target, 'inactive');
  printDone('disabled', 'rule', target.name);
}

/** `wsk rule status`. */
async function status(context: CommandContext): Promise<void> {
  const target = onlyRule(context);
  let found: string;
  try {
    found = textOf(asMap(await context.client.get(target.namespace, target.route)), 'status');
  } catch (error) {
    throw wrapError(error, `Unable to get status of rule '${target.name}'`, { showUsage: true });
  }
  stdout.print(`${stdout.ok} rule ${stdout.bold(target.name)} is ${stdout.bold(found)}\n`);
}

/** `wsk rule get`. */
async function get(context: CommandContext): Promise<void> {
  const { target, field } = targetWithField(context, rules);
  const rule = await read(context, rules, target, { showUsage: true });
  if (!context.flags.bool('summary')) return printEntity(rules, target, rule, field);
  const name = `/${textOf(rule, 'namespace')}/${textOf(rule, 'name')}`;
  stdout.print(`${stdout.bold('rule')} ${name}\n   (${stdout.bold('status')}: ${textOf(rule, 'status')})\n`);
}

/** `wsk rule delete`. */
async function removeRule(context: CommandContext): Promise<void> {
  const target = onlyRule(context);
  if (context.flags.bool('disable')) await setStatus(context, target, 'inactive');
  await remove(context, rules, target);
}

/** A list of rules with the status of each, which the server's list lacks. */
export async function withStatus(client: Client, namespace: string, rules: Json): Promise<JsonMap[]> {
  const complete: JsonMap[] = [];
  for (const rule of asList(rules).map(asMap)) {
    const name = asText(rule.get('name'));
    try {
      const found = asMap(await client.get(namespace, `rules/${encodePath(name)}`));
      complete.push(new Map([...rule, ['status', found.get('status') ?? '']]));
    } catch (error) {
      throw wrapError(error, `Unable to get status of rule '${name}'`);
    }
  }
  return complete;
}

const names = 'RULE_NAME TRIGGER_NAME ACTION_NAME';

/** `wsk rule`. */
export const ruleCommands: Command[] = [
  { name: 'create', argsUsage: names, summary: 'create new rule', flags: [], run: create },
  {
    name: 'delete',
    argsUsage: 'RULE_NAME',
    summary: 'delete rule',
    flags: [{ name: 'disable', type: 'bool', help: 'automatically disable rule before deleting it' }],
    run: removeRule,
  },
  { name: 'disable', argsUsage: 'RULE_NAME', summary: 'disable rule', flags: [], run: disable },
  { name: 'enable', argsUsage: 'RULE_NAME', summary: 'enable rule', flags: [], run: enable },
  { name: 'get', argsUsage: 'RULE_NAME', summary: 'get rule', flags: [summaryFlag('rule', '')], run: get },
  {
    name: 'list',
    argsUsage: '[NAMESPACE]',
    summary: 'list all rules',
    flags: [...pageFlags('rules'), nameSortFlag],
    run: (context) => list(context, rules, (namespace, found) => withStatus(context.client, namespace, found)),
  },
  { name: 'status', argsUsage: 'RULE_NAME', summary: 'get rule status', flags: [], run: status },
  {
    name: 'update',
    argsUsage: names,
    summary: 'update an existing rule, or create a rule if it does not exist',
    flags: [],
    run: update,
  },
];
