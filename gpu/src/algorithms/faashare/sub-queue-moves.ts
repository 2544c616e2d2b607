// Changes of sub-queues that FaaShare's algorithm 1 tries: a task joins others, or two sub-queues exchange tasks.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- an outlook has an end for each running task and member, in their order */
import type { Task } from '../../view/view.js';
import type { Refusal } from '../../stages/place/fact-filters.js';
import { keptForAnother } from '../../view/decision.js';
import { expectHold } from './moved-shares.js';
import { add, copyOf, memberOf, membersOf, outlookOf, hasRoom, remove } from './sub-queue.js';
import type { Member, Outlook, SubQueue } from './sub-queue.js';
import { neededMiB, tasksMiB } from '../../ledger/account.js';

/** What a task has before it if it does not join others. Times on the snapshot's clock, ms. */
export interface Prospect {
  /** When all that runs and waits will have been done. */
  horizonAt: number;
  /** When a GPU will be free for it; Infinity: beyond what is planned. */
  turnAt: number;
  /** Tasks behind it for each GPU, those that are expected included. */
  behind: number;
  /** When another task may start for which the GPU is kept; undefined: it is kept for none. */
  endBy?: number | undefined;
}

/** A task that was tried in a sub-queue. */
export interface Joined {
  queue: SubQueue;
  /** The sub-queue with the task as its last member. */
  tried: SubQueue;
  /** Time until the task's end, and what its neighbours end later for it, ms. */
  costMs: number;
}

/**
 * Adds a task, at the share that it fills, if the GPU does better with it: no task misses a deadline for it, the GPU is not
 * the last one to be done, it does more work (by `minGain` of what it does for one task), and what that costs those who
 * run there is no more than what it saves this task and those behind it. One that cannot wait joins where only the first
 * two hold. Works on a copy; gives it, or the condition that fails.
 */
export function joined(
  queue: SubQueue,
  { task, share }: { task: Task; share: number },
  prospect: Prospect,
  minGain: number,
): Joined | Refusal {
  const before = outlookOf(queue);
  const member = memberOf(task, queue, share);
  const tried = copyOf(queue);
  add(tried, member);
  let after = outlookOf(tried);
  if (after.late > before.late && queue.place.movesShares) after = expectHold(tried);
  if (after.late > before.late) return lateness(tried, before, after);
  if (prospect.endBy !== undefined && !isDoneBy(prospect.endBy, queue, after)) return keptForAnother;
  if (queue.fork.busy > 0) {
    const latestAt = Math.max(prospect.horizonAt, before.lastAt);
    // Of sets that are tried the times mostly are guesses; of others their runs have told that they gain.
    if (queue.firstShare?.slowdowns(queue.place, membersOf(tried), queue.startsAt) !== undefined) {
      return { queue, tried, costMs: after.sumAt - before.sumAt - queue.startsAt };
    }
    if (after.lastAt > latestAt) {
      const numbers = { endsInMs: after.lastAt - queue.startsAt, latestInMs: latestAt - queue.startsAt };
      return { reason: 'it would be done after all other GPUs', numbers };
    }
    const problem = littleGain(before, after, minGain) ?? dearness(member, before, after, prospect, queue.startsAt);
    if (problem !== undefined && canWait(member, before)) return problem;
  }
  return { queue, tried, costMs: after.sumAt - before.sumAt - queue.startsAt };
}

/** Part of the time until a kept GPU is free by which work that is put there may delay it. */
const backfillDelay = 0.02;

/** Whether the newcomer, the last one, has ended by then, and the first of the others ends hardly later than without it. */
function isDoneBy(endBy: number, { startsAt }: SubQueue, { endsAt }: Outlook): boolean {
  const newcomerAt = endsAt.at(-1) ?? -Infinity;
  const othersAt = Math.min(...endsAt.slice(0, -1));
  return newcomerAt <= endBy && othersAt <= endBy + backfillDelay * (endBy - startsAt);
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

/** What an exchange goes by. */
interface ExchangeOptions {
  /** What the tasks that come may take more than the one that goes, as a part of the GPU's memory. */
  tolerance: number;
  /** Who stays where it is. */
  isPinned(member: Member): boolean;
}

/** Queues that a task which would be late is tried in, at most. */
const maxMoves = 4;

/** What came of an attempt; `none`: nothing matched, and nothing was predicted. */
type Exchanged = 'none' | 'swapped' | 'moved' | 'dropped';

/**
 * Swaps tasks of `first` with quicker ones of `second` that fit into the same memory, if that lowers the mean predicted
 * completion over both and no task misses a deadline for it (FaaShare, algorithm 1, ExecuteExchange). One that would miss
 * its deadline is moved to the queue of `others` in which it ends first, and nothing is swapped. Works on copies.
 */
export function exchange(
  first: SubQueue,
  second: SubQueue,
  others: readonly SubQueue[],
  options: ExchangeOptions,
): Exchanged {
  const { leaving, coming } = match(first, second, options);
  // Between queues that are not one after the other, completions change places only: no more tasks, no lower mean.
  const isNext = first.place.id === second.place.id;
  if (leaving.length === 0 || (coming.length <= leaving.length && !isNext)) return 'none';
  const [one, other] = [copyOf(first), copyOf(second)];
  for (const member of leaving) remove(one, member);
  for (const member of coming) remove(other, member);
  if (!addAll(one, coming) || !addAll(other, leaving)) return 'dropped';
  if (isNext) other.startsAt += outlookOf(one).lastAt - outlookOf(first).lastAt;
  const before = [outlookOf(first), outlookOf(second)] as const;
  const after = [outlookOf(one), outlookOf(other)] as const;
  if (after[0].late > before[0].late || after[1].late > before[1].late) {
    const late = latecomers(one, coming).concat(latecomers(other, leaving))[0];
    if (late === undefined) return 'dropped';
    const from = coming.includes(late) ? second : first;
    return moveToBest(late, from, others) ? 'moved' : 'dropped';
  }
  if (after[0].sumAt + after[1].sumAt >= before[0].sumAt + before[1].sumAt) return 'dropped';
  Object.assign(first, one);
  Object.assign(second, other);
  return 'swapped';
}

/**
 * Each task of `first`, the largest first, with as many quicker ones of `second`, the quickest first, as its memory and the
 * tolerance have room for; each of those goes with one only.
 */
function match(
  first: SubQueue,
  second: SubQueue,
  { tolerance, isPinned }: ExchangeOptions,
): { leaving: Member[]; coming: Member[] } {
  const { account } = first.place;
  const [large, quick] = [timed(first, isPinned), timed(second, isPinned)];
  large.sort((a, b) => neededMiB(b.member.task, account) - neededMiB(a.member.task, account));
  quick.sort((a, b) => a.tookMs - b.tookMs);
  const leaving: Member[] = [];
  const coming: Member[] = [];
  const slackMiB = tolerance * tasksMiB(account);
  for (const one of large) {
    let leftMiB = neededMiB(one.member.task, account) + slackMiB;
    let isMatched = false;
    for (let at = 0; at < quick.length;) {
      const other = quick[at]!;
      // All further ones take longer.
      if (other.tookMs >= one.tookMs) break;
      const need = neededMiB(other.member.task, account);
      if (need > leftMiB) {
        at += 1;
        continue;
      }
      leftMiB -= need;
      coming.push(other.member);
      quick.splice(at, 1);
      isMatched = true;
    }
    if (isMatched) leaving.push(one.member);
  }
  return { leaving, coming };
}

/** The members that may be moved, each with its predicted time. */
function timed(queue: SubQueue, isPinned: (member: Member) => boolean): { member: Member; tookMs: number }[] {
  const { endsAt } = outlookOf(queue);
  return queue.members
    .map((member, at) => ({ member, tookMs: endsAt[queue.running.length + at]! - queue.startsAt }))
    .filter(({ member }) => !isPinned(member));
}

function addAll(queue: SubQueue, members: readonly Member[]): boolean {
  for (const { task } of members) {
    if (!hasRoom(queue, task)) return false;
    add(queue, memberOf(task, queue));
  }
  return true;
}

/** Those of `members` that miss their deadline in `queue`. */
function latecomers(queue: SubQueue, members: readonly Member[]): Member[] {
  const { endsAt } = outlookOf(queue);
  const tasks = new Set(
    queue.members.filter(({ deadline }, at) => endsAt[queue.running.length + at]! > deadline).map(({ task }) => task),
  );
  return members.filter(({ task }) => tasks.has(task));
}

/** Moves a member to the queue in which it ends first, if that is before it ends now and no task misses a deadline. */
function moveToBest(member: Member, from: SubQueue, others: readonly SubQueue[]): boolean {
  const { endsAt } = outlookOf(from);
  let bestAt = endsAt[from.running.length + from.members.indexOf(member)]!;
  let best: { queue: SubQueue; tried: SubQueue } | undefined;
  const fit = others.filter(
    (queue) => queue !== from && queue.fork.load + member.share <= 1 && hasRoom(queue, member.task),
  );
  for (const queue of fit.slice(0, maxMoves)) {
    const tried = copyOf(queue);
    add(tried, memberOf(member.task, queue));
    const outlook = outlookOf(tried);
    const at = outlook.endsAt.at(-1)!;
    if (outlook.late > outlookOf(queue).late || at >= bestAt) continue;
    bestAt = at;
    best = { queue, tried };
  }
  if (best === undefined) return false;
  remove(from, member);
  Object.assign(best.queue, best.tried);
  return true;
}
