import type { FlagSpec } from '../../args/flags.js';
import { mergeObjects } from '../../args/parameters.js';
import { wrapError } from '../../errors.js';
import { asMap, asText, sortKeys, type Json } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import {
  annotationFlags,
  checkArgs,
  nameSortFlag,
  pageFlags,
  parameterFlags,
  type Command,
  type CommandContext,
} from '../command.js';
import { feedOf, list, printEntity, read, summaryFlag, targetOf, targetWithField } from '../entities.js';
import { summaryOf } from '../summary.js';
import { create } from './create.js';
import { removeTrigger, tellFeed } from './remove.js';
import { triggers } from './triggers.js';
import { update } from './update.js';

async function fire({ args, client, pairs }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'A trigger name is required.');
  const { namespace, name, route } = targetOf(triggers, args[0] ?? '');
  const payload = sortKeys(mergeObjects(pairs.parameters, 'parameter'));
  let answer: Json;
  try {
    answer = await client.post(namespace, route, payload);
  } catch (error) {
    throw wrapError(error, `Unable to fire trigger '${name}'`);
  }
  const id = stdout.bold(asText(asMap(answer).get('activationId')));
  stdout.print(`${stdout.ok} triggered /${stdout.bold(namespace)}/${stdout.bold(name)} with id ${id}\n`);
}

/** Of a trigger with a feed, what the feed says about it is printed instead of the trigger. */
async function get(context: CommandContext): Promise<void> {
  const { target, field } = targetWithField(context, triggers);
  const trigger = await read(context, triggers, target);
  const feed = feedOf(trigger);
  if (feed !== '') await tellFeed(context, feed, target, 'READ');
  else if (context.flags.bool('summary')) stdout.print(summaryOf('trigger', trigger));
  else printEntity(triggers, target, trigger, field);
}

const feedParameters: FlagSpec[] = [
  { name: 'feed-param', short: 'F', type: 'pair', help: 'feed parameter values in `KEY VALUE` format' },
  { name: 'trigger-param', short: 'T', type: 'pair', help: 'trigger parameter values in `KEY VALUE` format' },
];

/** `wsk trigger`. */
export const triggerCommands: Command[] = [
  {
    name: 'create',
    argsUsage: 'TRIGGER_NAME',
    summary: 'create new trigger',
    flags: [
      ...annotationFlags,
      { name: 'feed', short: 'f', type: 'string', help: 'trigger feed `ACTION_NAME`' },
      ...parameterFlags,
      ...feedParameters,
    ],
    run: create,
  },
  { name: 'delete', argsUsage: 'TRIGGER_NAME', summary: 'delete trigger', flags: [], run: removeTrigger },
  {
    name: 'fire',
    argsUsage: 'TRIGGER_NAME [PAYLOAD]',
    summary: 'fire trigger event',
    flags: parameterFlags,
    run: fire,
  },
  {
    name: 'get',
    argsUsage: 'TRIGGER_NAME [FIELD_FILTER]',
    summary: 'get trigger',
    flags: [summaryFlag('trigger', '; parameters with prefix "*" are bound')],
    run: get,
  },
  {
    name: 'list',
    argsUsage: '[NAMESPACE]',
    summary: 'list all triggers',
    flags: [...pageFlags('triggers'), nameSortFlag],
    run: (context) => list(context, triggers),
  },
  {
    name: 'update',
    argsUsage: 'TRIGGER_NAME',
    summary: 'update an existing an trigger, or create a trigger if it does not exist',
    flags: [...annotationFlags, ...parameterFlags, ...feedParameters],
    run: update,
  },
];
