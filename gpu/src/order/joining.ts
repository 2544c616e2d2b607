import type { Task } from '../view/view.js';
import type { Refusal } from '../place/filters/fact-filter.js';
import { add, copyOf, memberOf, membersOf, outlookOf } from './sub-queue.js';
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
 * two hold. Gives the condition that fails, or undefined if the task is in.
 */
export function joinIfBetter(queue: SubQueue, task: Task, prospect: Prospect, minGain: number): Refusal | undefined {
  const before = outlookOf(queue);
  const member = memberOf(task, queue);
  const tried = copyOf(queue);
  add(tried, member);
  const after = outlookOf(tried);
  if (after.late > before.late) return lateness(tried, before, after);
  if (queue.busy > 0) {
    const latestAt = Math.max(prospect.horizonAt, before.lastAt);
    if (after.lastAt > latestAt) {
      const numbers = { endsInMs: after.lastAt - queue.startsAt, latestInMs: latestAt - queue.startsAt };
      return { reason: 'it would be done after all other GPUs', numbers };
    }
    const problem = littleGain(before, after, minGain) ?? dearness(member, before, after, prospect, queue.startsAt);
    if (problem !== undefined && canWait(member, before)) return problem;
  }
  Object.assign(queue, tried);
  return undefined;
}

/** Of the members that are late only beside the newcomer, which is the last one, the first. */
function lateness(tried: SubQueue, before: Outlook, after: Outlook): Refusal {
  const all = membersOf(tried);
  const isLate = ({ deadline }: Member, { endsAt }: Outlook, at: number): boolean =>
    (endsAt[at] ?? -Infinity) > deadline;
  const at = all.findIndex((member, index) => isLate(member, after, index) && !isLate(member, before, index));
  const { startsAt } = tried;
  const numbers: Refusal['numbers'] =
    at < 0 ? {} : { endsInMs: after.endsAt[at]! - startsAt, dueInMs: all[at]!.deadline - startsAt };
  const reason =
    at === all.length - 1 ? 'its deadline would be missed there' : 'a deadline of those that are there would be missed';
  return { reason, numbers };
}

function littleGain(before: Outlook, after: Outlook, minGain: number): Refusal | undefined {
  const least = before.rate + minGain;
  if (after.rate >= least) return undefined;
  return { reason: 'the GPU would do too little more work', numbers: { rate: after.rate, least } };
}

/** Whether all completions together are later than if the task waited for its turn, and those behind it with it. */
function dearness(
  { startMs, leftMs }: Member,
  before: Outlook,
  after: Outlook,
  { turnAt, behind }: Prospect,
  startsAt: number,
): Refusal | undefined {
  const aloneMs = startMs + leftMs;
  const savedMs = before.lastAt + aloneMs - after.lastAt;
  const costAt = after.sumAt - before.sumAt - behind * savedMs;
  if (!(costAt > turnAt + aloneMs)) return undefined;
  const numbers = { costMs: costAt - startsAt, waitMs: turnAt + aloneMs - startsAt };
  return { reason: 'those that are there would lose more than waiting costs', numbers };
}

/** Whether a member would be in time if it began when the first of those before it has ended; best effort always can. */
function canWait({ startMs, leftMs, deadline }: Member, { endsAt }: Outlook): boolean {
  return endsAt.some((endAt) => endAt + startMs + leftMs <= deadline);
}
