import type { ActionQueue } from './action-queue.js';
import type { Advice } from './backlog-probe.js';

/** A start pays if the wait is expected to be so many times as long: it takes processor time from the runs, too. */
const worthStarts = 2;
/** For shorter runs it is tried out how many containers serve them best, ms. */
export const longRunMs = 20;

/** Whether the jobs that wait need more than the containers there are: those are too slow, stuck, or saturated. */
export function adviseGrowth(queue: ActionQueue, nowMs: number): Advice {
  const waitedMs = nowMs - (queue.waiting.peek()?.sinceMs ?? nowMs);
  if (waitedMs > queue.startMs && nowMs - queue.lastEndMs > queue.startMs) return 'add';
  if (queue.runMs === undefined) return 'add';
  if (queue.runMs > longRunMs && queue.expectedWaitMs() > queue.startMs * worthStarts) return 'add';
  if (queue.starting > 0) return 'keep';
  return queue.backlog.advise(nowMs, queue.progress());
}
