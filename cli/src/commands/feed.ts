import { mergeObjects } from '../args/parameters.js';
import { parseQualifiedName, type QualifiedName } from '../args/qualified-name.js';
import { InvocationError } from '../client/answer.js';
import { encodePath } from '../client/api-host.js';
import type { CommandContext } from '../command.js';
import { wrapError, type WskError } from '../errors.js';
import { sortKeys, type Json, type JsonMap } from '../json/json.js';
import { stdout } from '../terminal.js';
import { printUnsuccessful } from './action/group.js';
import type { Target } from './entities.js';

/** Events in the life of a trigger that its feed is told. */
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
 * Tells the feed of an existing trigger what happens to it and prints the feed's record, on stderr if it failed.
 * @throws WskError if it failed.
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

/** `Unable to configure feed '...'`, put before why. */
export function feedFailure(feedName: string, error: unknown, options: { showUsage?: boolean } = {}): WskError {
  return wrapError(error, `Unable to configure feed '${feedName}'`, options);
}
