import { fullyQualified } from '../../args/qualified-name.js';
import { wrapError } from '../../errors.js';
import { asMap } from '../../json/json.js';
import { ruleShape } from '../../shapes.js';
import { stdout } from '../../terminal.js';
import { checkArgs, type CommandContext } from '../command.js';
import {
  body,
  printDone,
  printEntity,
  read,
  remove,
  targetOf,
  targetWithField,
  textOf,
  type EntityKind,
  type Target,
} from '../entities.js';
import { listFormats } from '../lists.js';

/** What the commands about rules work on. */
export const rules: EntityKind = { noun: 'rule', collection: 'rules', shape: ruleShape, format: listFormats.rules };

/** `wsk rule create`. */
export function create(context: CommandContext): Promise<void> {
  return put(context, false, 'create', 'created');
}

/** `wsk rule update`. */
export function update(context: CommandContext): Promise<void> {
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
export async function enable(context: CommandContext): Promise<void> {
  const target = onlyRule(context);
  await setStatus(context, target, 'active');
  printDone('enabled', 'rule', target.name);
}

/** `wsk rule disable`. */
export async function disable(context: CommandContext): Promise<void> {
  const target = onlyRule(context);
  await setStatus(context, target, 'inactive');
  printDone('disabled', 'rule', target.name);
}

/** `wsk rule status`. */
export async function status(context: CommandContext): Promise<void> {
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
export async function get(context: CommandContext): Promise<void> {
  const { target, field } = targetWithField(context, rules);
  const rule = await read(context, rules, target, { showUsage: true });
  if (!context.flags.bool('summary')) return printEntity(rules, target, rule, field);
  const name = `/${textOf(rule, 'namespace')}/${textOf(rule, 'name')}`;
  stdout.print(`${stdout.bold('rule')} ${name}\n   (${stdout.bold('status')}: ${textOf(rule, 'status')})\n`);
}

/** `wsk rule delete`. */
export async function removeRule(context: CommandContext): Promise<void> {
  const target = onlyRule(context);
  if (context.flags.bool('disable')) await setStatus(context, target, 'inactive');
  await remove(context, rules, target);
}
