import { mergeObjects, toKeyValues } from '../../args/parameters.js';
import { exitCodes, WskError, wrapError } from '../../errors.js';
import { asMap, type JsonMap } from '../../json/json.js';
import { checkArgs, type CommandContext } from '../command.js';
import { feedOf, printDone, targetOf, type Target } from '../entities.js';
import { createTrigger, splitParameters, triggerBody } from './create.js';
import { configureFeed, feedFailure } from './feed.js';
import { triggers } from './triggers.js';

const notFound = 404 - 256;

/** `wsk trigger update`; creates the trigger if it does not exist. */
export async function update(context: CommandContext): Promise<void> {
  const { args, client, pairs } = context;
  checkArgs(args, 1, 1, 'A trigger name is required.');
  const target = targetOf(triggers, args[0] ?? '');
  const annotations = toKeyValues(mergeObjects(pairs.annotations, 'annotation'));
  const plain = toKeyValues(mergeObjects(pairs.parameters, 'parameter'));
  let existing: JsonMap;
  try {
    existing = asMap(await client.get(target.namespace, target.route));
  } catch (error) {
    if (error instanceof WskError && error.exitCode === notFound) return createTrigger(context, '');
    throw wrapError(error, `Unable to get trigger '${target.name}'`);
  }
  const split = splitParameters(pairs);
  const feed = feedOf(existing);
  if (split.apart) {
    await put(context, target, annotations, toKeyValues(mergeObjects(split.trigger, 'parameter')));
    if (split.feed.length > 0) await updateFeed(context, target, feed, split.feed);
  } else if (feed !== '') await updateFeed(context, target, feed, split.feed);
  else await put(context, target, annotations, plain);
  printDone('updated', 'trigger', target.name);
}

async function put(
  { client }: CommandContext,
  target: Target,
  annotations: JsonMap[],
  parameters: JsonMap[],
): Promise<void> {
  try {
    await client.put(target.namespace, `${target.route}?overwrite=true`, triggerBody(target, annotations, parameters));
  } catch (error) {
    throw wrapError(error, `Unable to update trigger '${target.name}'`);
  }
}

async function updateFeed(context: CommandContext, target: Target, feed: string, parameters: string[]): Promise<void> {
  if (feed === '') {
    const none = new WskError('this trigger does not contain a feed', { exitCode: exitCodes.general });
    throw feedFailure(target.name, none);
  }
  try {
    await configureFeed(context, feed, target, 'UPDATE', parameters);
  } catch (error) {
    throw wrapError(error, `Unable to create trigger '${target.name}'`);
  }
}
