import type { Pairs } from '../../args/pairs.js';
import { mergeObjects, toKeyValues } from '../../args/parameters.js';
import { parseQualifiedName } from '../../args/qualified-name.js';
import { InvocationError } from '../../client/answer.js';
import { exitCodes, WskError, wrapError } from '../../errors.js';
import { sortKeys, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { printInvoked, printUnsuccessful } from '../action/invoke.js';
import { checkArgs, type CommandContext } from '../command.js';
import { body, printDone, targetOf, type Target } from '../entities.js';
import { feedArguments, feedFailure, invokeFeed } from './feed.js';
import { removeTrigger } from './remove.js';
import { triggers } from './triggers.js';

/** For whom the parameters of the command line are. */
export interface SplitParameters {
  trigger: string[];
  feed: string[];
  /** `-F` or `-T` told them apart; with `-p` they are the feed's, or the trigger's if there is none. */
  apart: boolean;
}

/** @throws WskError if `-p` is combined with `-F` or `-T`. */
export function splitParameters(pairs: Pairs): SplitParameters {
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
export async function create(context: CommandContext): Promise<void> {
  checkArgs(context.args, 1, 1, 'A trigger name is required.');
  await createTrigger(context, context.flags.text('feed'));
}

/** Creates a trigger and, if it has a feed, has the feed serve it; a trigger whose feed refuses is deleted again. */
export async function createTrigger(context: CommandContext, feedName: string): Promise<void> {
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

/** The body of a PUT; what it does not name stays as it is. */
export function triggerBody({ name }: Target, annotations: JsonMap[], parameters: JsonMap[]): JsonMap {
  return body({ name, annotations, parameters });
}

async function removeAgain(context: CommandContext): Promise<void> {
  try {
    await removeTrigger(context);
  } catch (error) {
    if (!(error instanceof WskError)) throw error; // else the feed's own failure is what there is to report
  }
}
