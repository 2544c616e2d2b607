import { WskError } from '../../errors.js';
import { checkArgs, type CommandContext } from '../command.js';
import { feedOf, read, remove, targetOf, type Target } from '../entities.js';
import { configureFeed, type LifecycleEvent } from './feed.js';
import { triggers } from './triggers.js';

/** `wsk trigger delete`: its feed is told first, but cannot prevent it. */
export async function removeTrigger(context: CommandContext): Promise<void> {
  checkArgs(context.args, 1, 1, 'A trigger name is required.');
  const target = targetOf(triggers, context.args[0] ?? '');
  const feed = feedOf(await read(context, triggers, target));
  if (feed !== '') await tellFeed(context, feed, target, 'DELETE');
  await remove(context, triggers, target);
}

/** Tells a feed what it can do nothing about: if it fails, that shows on stderr and in nothing else, as with wsk. */
export async function tellFeed(
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
