import { mergeObjects, feedOf, toKeyValues, type Pairs } from '../args/parameters.js';
import { parseQualifiedName, type QualifiedName } from '../args/qualified-name.js';
import { InvocationError } from '../client/client.js';
import { encodePath } from '../client/transport.js';
import { exitCodes, WskError, wrapError } from '../errors.js';
import { sortKeys, type Json, type JsonMap, asMap, asText, body } from '../json/json.js';
import { stdout } from '../terminal.js';
import { printUnsuccessful, printInvoked } from './action/group.js';
import type { FlagSpec } from '../args/flags.js';
import {
  annotationFlags,
  checkArgs,
  nameSortFlag,
  pageFlags,
  parameterFlags,
  type Command,
  type CommandContext,
} from '../command.js';
import { triggerShape } from '../shapes.js';
import {
  list,
  listFormats,
  printDone,
  printEntity,
  read,
  remove,
  summaryFlag,
  summaryOf,
  targetOf,
  targetWithField,
  type EntityKind,
  type Target,
} from './entities.js';

/** Lifecycle events of a trigger, which its feed receives. */
export type LifecycleEvent = 'CREATE' | 'READ' | 'UPDATE' | 'DELETE';

/** Arguments of a feed action: the command line's parameters, the trigger, the key of its owner, and the event. */
export function feedArguments(
  { settings }: CommandContext,
  { namespace, name }: Target,
  lifecycleEvent: LifecycleEvent,
  parameters: string[],
): JsonMap {
  const lifecycle: JsonMap = new Map([
    ['lifecycleEvent', lifecycleEvent],
    ['triggerName', `/${namespace}/${name}`],
    ['authKey', settings.auth],
  ]);
  return new Map([...mergeObjects(parameters, 'parameter'), ...lifecycle]);
}

/** Invokes a feed action and waits for its answer. */
export function invokeFeed({ client }: CommandContext, feed: QualifiedName, parameters: JsonMap): Promise<Json> {
  const route = `actions/${encodePath(feed.path)}`;
  return client.invoke(feed.namespace, route, sortKeys(parameters), { blocking: true, result: false });
}

/**
 * Sends an event of an existing trigger to its feed and prints the feed's record, on stderr if it failed.
 * @throws WskError if the feed failed.
 */
export async function configureFeed(
  context: CommandContext,
  feedName: string,
  trigger: Target,
  lifecycleEvent: LifecycleEvent,
  parameters: string[],
): Promise<void> {
  const feed = parseQualifiedName(feedName);
  const feedArgs = feedArguments(context, trigger, lifecycleEvent, parameters);
  try {
    stdout.printJson(sortKeys(await invokeFeed(context, feed, feedArgs)));
  } catch (error) {
    if (!(error instanceof InvocationError)) {
      const inFeed = wrapError(error, `Unable to invoke action '${feed.path}'`, { showUsage: true });
      throw feedFailure(feedName, inFeed, { showUsage: true });
    }
    printUnsuccessful(error, feed, true);
    throw feedFailure(feedName, error, { showUsage: true });
  }
}

/** `Unable to configure feed '...'`, put before the reason. */
export function feedFailure(feedName: string, error: unknown, options: { showUsage?: boolean } = {}): WskError {
  return wrapError(error, `Unable to configure feed '${feedName}'`, options);
}

/** Properties of triggers, for the commands that all kinds of entities share. */
const triggers: EntityKind = {
  noun: 'trigger',
  collection: 'triggers',
  shape: triggerShape,
  format: listFormats.triggers,
};

/** The parameters of the command line, divided between trigger and feed. */
interface SplitParameters {
  trigger: string[];
  feed: string[];
  /** Whether `-F` or `-T` divided the parameters. With `-p` they are the feed's, or the trigger's if it has no feed. */
  apart: boolean;
}

/** @throws WskError if `-p` is combined with `-F` or `-T`. */
function splitParameters(pairs: Pairs): SplitParameters {
  const { parameters, feedParameters, triggerParameters } = pairs;
  const apart = feedParameters.length > 0 || triggerParameters.length > 0;
  if (!apart) return { trigger: parameters, feed: parameters, apart };
  if (parameters.length === 0) return { trigger: triggerParameters, feed: feedParameters, apart };
  throw new WskError(
    'Incorrect usage. Cannot combine --feed-param or --trigger-param flag with neither --param nor --param-file flag',
    { exitCode: exitCodes.notAllowed },
  );
}

/** `wsk trigger create`. */
async function create(context: CommandContext): Promise<void> {
  checkArgs(context.args, 1, 1, 'A trigger name is required.');
  await createTrigger(context, context.flags.text('feed'));
}

/** Creates a trigger and, if it has a feed, configures the feed. A trigger whose feed refuses is deleted again. */
async function createTrigger(context: CommandContext, feedName: string): Promise<void> {
  const { args, client, pairs } = context;
  const target = targetOf(triggers, args[0] ?? '');
  const split = splitParameters(pairs);
  const feed = feedName === '' ? undefined : parseQualifiedName(feedName);
  const annotations = mergeObjects(pairs.annotations, 'annotation');
  const fullFeedName = feed ? `/${feed.namespace}/${feed.path}` : '';
  if (feed) annotations.set('feed', fullFeedName);
  else if (split.apart && split.feed.length > 0) {
    const message = 'Incorrect usage. Trigger without a feed cannot have feed parameters';
    throw new WskError(message, { exitCode: exitCodes.notAllowed });
  }
  const own = split.apart || !feed ? split.trigger : [];
  const parameters = toKeyValues(mergeObjects(own, 'parameter'));
  const feedArgs = feedArguments(context, target, 'CREATE', split.feed);
  const definition = triggerBody(target, toKeyValues(annotations), parameters);
  try {
    await client.put(target.namespace, `${target.route}?overwrite=false`, definition);
  } catch (error) {
    throw wrapError(error, `Unable to create trigger '${target.name}'`);
  }
  if (feed) {
    try {
      const answer = await invokeFeed(context, feed, feedArgs);
      printInvoked(stdout, feed, answer);
      stdout.printJson(sortKeys(answer));
    } catch (error) {
      if (error instanceof InvocationError) printUnsuccessful(error, feed, true);
      await removeAgain(context);
      throw wrapError(feedFailure(fullFeedName, error), `Unable to create trigger '${target.name}'`);
    }
  }
  printDone('created', 'trigger', target.name);
}

/** The body of a PUT; members that it does not name stay as they are. */
function triggerBody({ name }: Target, annotations: JsonMap[], parameters: JsonMap[]): JsonMap {
  return body({ name, annotations, parameters });
}

async function removeAgain(context: CommandContext): Promise<void> {
  try {
    await removeTrigger(context);
  } catch (error) {
    if (!(error instanceof WskError)) throw error; // the feed's own failure is reported instead
  }
}

const notFound = 404 - 256;

/** `wsk trigger update`; creates the trigger if it does not exist. */
async function update(context: CommandContext): Promise<void> {
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

/** `wsk trigger delete`: its feed receives the event first, but cannot prevent the deletion. */
async function removeTrigger(context: CommandContext): Promise<void> {
  checkArgs(context.args, 1, 1, 'A trigger name is required.');
  const target = targetOf(triggers, context.args[0] ?? '');
  const feed = feedOf(await read(context, triggers, target));
  if (feed !== '') await tellFeed(context, feed, target, 'DELETE');
  await remove(context, triggers, target);
}

/** Sends an event to a feed whose failure does not stop the command: it appears on stderr only, as with wsk. */
async function tellFeed(
  context: CommandContext,
  feed: string,
  target: Target,
  lifecycleEvent: LifecycleEvent,
): Promise<void> {
  try {
    await configureFeed(context, feed, target, lifecycleEvent, context.pairs.parameters);
  } catch (error) {
    if (!(error instanceof WskError)) throw error;
  }
}

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

/** Prints a trigger, or, if it has a feed, the feed's answer about it instead. */
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
