/* eslint-disable @typescript-eslint/no-non-null-assertion -- slowdowns and outlooks have an element for each running task and member, in their order */
import { isUnknown } from '../../stages/place/first-share.js';
import type { FirstShare } from '../../stages/place/first-share.js';
import type { Sharer } from '../../share/set-trials.js';
import { PlaceFork } from '../../ledger/fork.js';
import type { SeenPlace } from '../../view/running.js';
import { deadlineAt, plannedShare } from '../../view/view.js';
import type { RunningTask, Task } from '../../view/view.js';
import { idleInstances } from '../../stages/place/candidate.js';
import { obstacle, workOf } from './plan-places.js';
import type { SetPredictions } from '../../stages/order/set-predictions.js';
import { classFractions, sufficientShare } from '../../stages/share/share.js';
import type { Refusal } from '../../stages/place/fact-filters.js';
import { rounding } from '../../stages/place/place.js';

/** Time that a task is taken to need that has never been measured, ms. */
export const unmeasuredMs = 1000;

/** A task in a sub-queue, or one that runs on its GPU. */
export interface Member {
  task: Task;
  share: number;
  /** Of its features and share, for predictions. */
  kind: number;
  /** Time alone at 100 % that is still ahead of it, ms. */
  leftMs: number;
  /** Time from now until it computes, ms. */
  startMs: number;
  /** When it has to have ended, ms; Infinity: it has no deadline, or has missed it. */
  deadline: number;
}

/** Tasks that are to run on one GPU together (FaaShare, section VI). */
export interface SubQueue {
  place: SeenPlace;
  /** The place with the members on it, beside what runs there if the sub-queue may start now. */
  fork: PlaceFork;
  predictions: SetPredictions;
  /** The rule for functions of which nothing is measured; undefined: they are taken to fill the GPU. */
  firstShare: FirstShare | undefined;
  /** A waiting task with an SLO is to have its GPU next: no unknown one joins. */
  isKeptFromUnknown: boolean;
  /** When its GPU will be free for it, ms; now for the first one on a GPU. */
  startsAt: number;
  /** What runs there already, and cannot be moved: see `residentsOf`. */
  running: readonly RunningTask[];
  residents: Member[] | undefined;
  /** How far it has got, where that is known. */
  progress: Progress | undefined;
  members: Member[];
  /** Of what is in it now. */
  outlook: Outlook | undefined;
  /** Kinds of residents and members while some of them are held back (see `bestHold`); undefined: none is. */
  heldKinds: readonly number[] | undefined;
}

/** What is predicted of a sub-queue. Times on the snapshot's clock, ms. */
export interface Outlook {
  /** Of residents, then members. */
  endsAt: number[];
  /** How many of them miss their deadline. */
  late: number;
  /** When all have ended. */
  lastAt: number;
  /** Sum of `endsAt`. */
  sumAt: number;
  /** Work done in a ms, in ms of work alone, while all are there. */
  rate: number;
}

/** The sub-queue that may start now on a GPU, with nothing in it but what runs there. */
export function firstQueueOn(
  place: SeenPlace,
  predictions: SetPredictions,
  at: number,
  progress?: Progress,
  firstShare?: FirstShare,
): SubQueue {
  const { account, running, movesShares } = place;
  const fork = PlaceFork.of(
    account,
    running.map((one) => plannedShare(movesShares, one)),
  );
  const queue = queueIn(place, fork, predictions, at, running, undefined);
  queue.progress = progress;
  queue.firstShare = firstShare;
  return queue;
}

/** Spelled out: copying the fields of one object into another takes ten times as long, and every decision makes dozens. */
function queueIn(
  place: SeenPlace,
  fork: PlaceFork,
  predictions: SetPredictions,
  startsAt: number,
  running: readonly RunningTask[],
  residents: Member[] | undefined,
): SubQueue {
  return {
    place,
    fork,
    predictions,
    firstShare: undefined,
    isKeptFromUnknown: false,
    startsAt,
    running,
    residents,
    progress: undefined,
    members: [],
    outlook: undefined,
    heldKinds: undefined,
  };
}

/** What runs on a sub-queue's GPU; computed only where a task may join it, since that takes predictions. */
export function residentsOf(queue: SubQueue): Member[] {
  if (queue.residents !== undefined) return queue.residents;
  const { place, predictions, running, startsAt: at } = queue;
  const planned = running.map((one) => plannedShare(place.movesShares, one));
  const kinds = running.map(({ task }, index) => predictions.kindOf(task.features, planned[index]!));
  const sharers = running.map(({ task }, index): Sharer => ({ task, share: planned[index]! }));
  const slowdowns = queue.firstShare?.slowdowns(place, sharers, at) ?? predictions.slowdowns(kinds);
  queue.residents = running.map((one, index): Member => {
    const { task, startedAt } = one;
    const share = planned[index]!;
    const slowdown = slowdowns[index]!;
    const soloMs = task.soloMs ?? unmeasuredMs;
    const sinceMs = Math.max(0, at - startedAt);
    const startMs = Math.max(0, (task.startMs ?? 0) - sinceMs);
    const ranMs = Math.max(0, sinceMs - (task.startMs ?? 0));
    // One that takes longer than predicted is taken to need some more yet.
    const leftMs = queue.progress?.leftMs(one, at) ?? Math.max(soloMs * 0.05, soloMs - ranMs / slowdown);
    // Where shares move, its neighbours can be held back for it.
    const least = place.movesShares ? predictions.alone(task.features, share) : slowdown;
    const isLate = at + startMs + leftMs * least > deadlineAt(task);
    return { task, share, kind: kinds[index]!, leftMs, startMs, deadline: isLate ? Infinity : deadlineAt(task) };
  });
  return queue.residents;
}

/** A sub-queue that has a GPU to itself from `startsAt` on. */
export function laterQueueOn({ place, fork, predictions, firstShare }: SubQueue, startsAt: number): SubQueue {
  const queue = queueIn(place, fork.emptied(), predictions, startsAt, [], []);
  queue.firstShare = firstShare;
  return queue;
}

/** A copy that can be filled without the original's changing. */
export function copyOf(queue: SubQueue): SubQueue {
  const copy = queueIn(
    queue.place,
    queue.fork.copy(),
    queue.predictions,
    queue.startsAt,
    queue.running,
    queue.residents,
  );
  copy.firstShare = queue.firstShare;
  copy.isKeptFromUnknown = queue.isKeptFromUnknown;
  copy.members = [...queue.members];
  copy.outlook = queue.outlook;
  return copy;
}

/** A task as it would be in `queue`, at the share that it fills, or at a smaller one. */
export function memberOf(task: Task, queue: SubQueue, share = task.share ?? sufficientShare(task)): Member {
  return {
    task,
    share,
    kind: queue.predictions.kindOf(task.features, share),
    leftMs: task.soloMs ?? unmeasuredMs,
    startMs: isWarmOn(queue.place, task) ? 0 : (task.startMs ?? 0),
    // Nothing can be promised about what has never been measured.
    deadline: task.soloMs === undefined ? Infinity : deadlineAt(task),
  };
}

/** The largest class that is at most `most`, or undefined. */
export function shareWithin(most: number): number | undefined {
  return classFractions.findLast((share) => share <= most + rounding);
}

/** Whether an instance of its function idles there, in which it starts at once. */
export function isWarmOn({ account }: SeenPlace, task: Task): boolean {
  return idleInstances(account.occupants, task).length > 0;
}

/** Whether there is room for a task, as far as memory, processes and the rule for unknown functions go. */
export function hasRoom(queue: SubQueue, task: Task): boolean {
  return obstacle(queue.fork, task) === undefined && firstShareRefusal(queue, task, () => 0) === undefined;
}

/** Why the rule for unknown functions keeps a task out of a sub-queue; `waitMs`: as in `FirstShare.refusal`. */
export function firstShareRefusal(queue: SubQueue, task: Task, waitMs: () => number): Refusal | undefined {
  const { firstShare, place, running, members, isKeptFromUnknown, startsAt: at } = queue;
  if (firstShare === undefined) return undefined;
  const beside = running.length + members.length;
  if (isKeptFromUnknown && isUnknown(task)) return { reason: keptForStrict, numbers: { beside } };
  if (beside === 0 && !firstShare.isAboutEmptyPlaces) return undefined;
  const [asking, ...there] = sharersWith(queue, task);
  return firstShare.refusal(place, there, asking, { at, waitMs });
}

/** Whether the rule for unknown functions is about all that would run together with a task: each counts as a part of the GPU then. */
export function isByRule(queue: SubQueue, task: Task): boolean {
  const { firstShare, place, startsAt } = queue;
  return firstShare?.slowdowns(place, sharersWith(queue, task), startsAt) !== undefined;
}

/** A task, and what runs and is to start beside it. */
function sharersWith({ place, running, members }: SubQueue, task: Task): [Sharer, ...Sharer[]] {
  const all: [Sharer, ...Sharer[]] = [{ task, share: task.share ?? sufficientShare(task) }];
  for (const one of running) all.push({ task: one.task, share: plannedShare(place.movesShares, one) });
  for (const one of members) all.push({ task: one.task, share: one.share });
  return all;
}

const keptForStrict = 'it is kept for a task with an SLO that waits';

export function add(queue: SubQueue, member: Member): void {
  queue.fork.hold(workOf(member.task), member.share);
  queue.members.push(member);
  queue.outlook = undefined;
}

export function remove(queue: SubQueue, member: Member): void {
  queue.members.splice(queue.members.indexOf(member), 1);
  queue.fork.release(workOf(member.task), member.share);
  queue.outlook = undefined;
}

/** What runs, then what is to start. */
export function membersOf(queue: SubQueue): Member[] {
  return [...residentsOf(queue), ...queue.members];
}

/** How much slower they are beside each other than alone. */
export function slowdownsOf(
  { place, predictions, firstShare, startsAt }: SubQueue,
  members: readonly Member[],
): readonly number[] {
  const byRule = firstShare?.slowdowns(place, members, startsAt);
  if (byRule !== undefined) return byRule;
  return predictions.slowdowns(members.map(({ kind }) => kind));
}

/**
 * What is predicted of all that is in a sub-queue: who has ended disturbs the others no more. A start is taken to disturb
 * them as much as the rest of its run.
 */
export function outlookOf(queue: SubQueue): Outlook {
  return (queue.outlook ??= outlookBy(queue, (together) => slowdownsOf(queue, together)));
}

/** The outlook of a sub-queue, with the slowdowns that `slowdownsFor` gives for those that run together, in their order. */
export function outlookBy(queue: SubQueue, slowdownsFor: (together: readonly Member[]) => readonly number[]): Outlook {
  const all = membersOf(queue);
  const { startsAt } = queue;
  const outlook: Outlook = { endsAt: [], late: 0, lastAt: startsAt, sumAt: 0, rate: 0 };
  const leftMs = all.map((member) => member.leftMs);
  let passedMs = 0;
  for (let open = [...all.keys()]; open.length > 0;) {
    const slowdowns = slowdownsFor(open.map((index) => all[index]!));
    if (open.length === all.length) outlook.rate = slowdowns.reduce((sum, slowdown) => sum + 1 / slowdown, 0);
    const stepMs = Math.min(...open.map((index, at) => leftMs[index]! * slowdowns[at]!));
    passedMs += stepMs;
    open = open.filter((index, at) => {
      // What is no number ends at once.
      const stays = leftMs[index]! * slowdowns[at]! > stepMs;
      if (stays) leftMs[index]! -= stepMs / slowdowns[at]!;
      else outlook.endsAt[index] = startsAt + all[index]!.startMs + passedMs;
      return stays;
    });
  }
  all.forEach(({ deadline }, index) => {
    const endsAt = outlook.endsAt[index]!;
    outlook.late += Number(endsAt > deadline);
    outlook.lastAt = Math.max(outlook.lastAt, endsAt);
    outlook.sumAt += endsAt;
  });
  return outlook;
}

/** Gives a sub-queue's members their shares. */
export function setShares(queue: SubQueue, shares: readonly number[]): void {
  queue.members = queue.members.map((member, at) => {
    const share = shares[at]!;
    queue.fork.reshare(member.share, share);
    return { ...member, share, kind: queue.predictions.kindOf(member.task.features, share) };
  });
  queue.outlook = undefined;
}

/** What was known of a running task when a policy decided last. */
export interface Seen {
  /** Time alone that was still ahead, ms. */
  leftMs: number;
  at: number;
  /** Predicted beside those who ran with it from then on. */
  slowdown: number;
}

/**
 * How far running tasks have got, from what was predicted of each set that they were in: the end of a run does not
 * move those that stay further ahead. Knows what ran at the last decision only.
 */
export class Progress {
  private seen = new Map<string, Seen>();

  /** Time alone that is still ahead of a task at `at`, ms; undefined for one that was not seen before. */
  leftMs({ task, startedAt }: RunningTask, at: number): number | undefined {
    const seen = this.seen.get(task.id);
    if (seen === undefined) return undefined;
    const computesAt = startedAt + (task.startMs ?? 0);
    const ranMs = Math.max(0, at - Math.max(seen.at, computesAt));
    // One that takes longer than predicted is taken to need some more yet.
    return Math.max((task.soloMs ?? unmeasuredMs) * 0.05, seen.leftMs - ranMs / seen.slowdown);
  }

  /** Keeps what runs after a decision, with its starts. */
  note(queues: readonly SubQueue[], at: number): void {
    const seen = new Map<string, Seen>();
    for (const queue of queues) {
      const members = membersOf(queue);
      const { heldKinds } = queue;
      const slowdowns = heldKinds ? queue.predictions.slowdowns(heldKinds) : slowdownsOf(queue, members);
      members.forEach(({ task, leftMs }, index) => seen.set(task.id, { leftMs, at, slowdown: slowdowns[index]! }));
    }
    this.seen = seen;
  }

  /** The state by task, for `restore`. */
  saved(): [string, Seen][] {
    return [...this.seen];
  }

  /** Takes the state of another one. */
  restore(seen: readonly (readonly [string, Seen])[]): void {
    this.seen = new Map(seen);
  }
}
