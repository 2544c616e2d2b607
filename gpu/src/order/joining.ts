import type { Task } from '../view/view.js';
import { add, copyOf, memberOf, outlookOf } from './sub-queue.js';
import type { Member, Outlook, SubQueue } from './sub-queue.js';

/** What a task has before it if it does not join others. Times on the snapshot's clock, ms. */
export interface Prospect {
  /** When all that runs and waits will have been done. */
  horizonAt: number;
  /** When a GPU will be free for it; Infinity: beyond what is planned. */
  turnAt: number;
  /** Tasks behind it for each GPU, those that are expected included. */
  behind: number;
}

/**
 * Adds a task, at the share that it fills, if the GPU does better with it: nobody misses a deadline for it, the GPU is not
 * the last one to be done, it does more work (by `minGain` of what it does for one task), and what that costs those who
 * run there is no more than what it saves this task and those behind it. One that cannot wait joins where only the first
 * two hold.
 */
export function joinIfBetter(queue: SubQueue, task: Task, prospect: Prospect, minGain: number): boolean {
  const before = outlookOf(queue);
  const member = memberOf(task, queue);
  const tried = copyOf(queue);
  add(tried, member);
  const after = outlookOf(tried);
  if (after.late > before.late) return false;
  if (queue.busy > 0) {
    if (after.lastAt > Math.max(prospect.horizonAt, before.lastAt)) return false;
    const isBetter = after.rate >= before.rate + minGain && !isDear(member, before, after, prospect);
    if (!isBetter && canWait(member, before)) return false;
  }
  Object.assign(queue, tried);
  return true;
}

/** Whether all completions together are later than if the task waited for its turn, and those behind it with it. */
function isDear({ startMs, leftMs }: Member, before: Outlook, after: Outlook, { turnAt, behind }: Prospect): boolean {
  const aloneMs = startMs + leftMs;
  const savedMs = before.lastAt + aloneMs - after.lastAt;
  return after.sumAt - before.sumAt - behind * savedMs > turnAt + aloneMs;
}

/** Whether a member would be in time if it began when the first of those before it has ended; best effort always can. */
function canWait({ startMs, leftMs, deadline }: Member, { endsAt }: Outlook): boolean {
  return endsAt.some((endAt) => endAt + startMs + leftMs <= deadline);
}
