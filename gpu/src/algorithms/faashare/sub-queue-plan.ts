// Planning by sub-queues, and the horizon until which the GPUs are busy.
import { groupedBy } from '@gpuwhisk/common/collections';
import { defaultBestEffortMs } from '../../stages/order/earliest-deadline.js';
import { finalShares } from './final-shares.js';
import type { ShareOptions } from './final-shares.js';
import { ShareMoves } from './moved-shares.js';
import type { SavedMoves } from './moved-shares.js';
import { exchange } from './sub-queue-moves.js';
import { Holdings, NamespaceTurns } from './namespace-fairness.js';
import type { NamespaceQueue, SavedTurns } from './namespace-fairness.js';
import { Progress, firstQueueOn, membersOf, outlookOf, unmeasuredMs, residentsOf } from './sub-queue.js';
import type { Seen, Member, SubQueue } from './sub-queue.js';
import { functionKeyOf } from '../../ledger/occupancy.js';
import { isUnknown } from '../../stages/place/first-share.js';
import type { FirstShare } from '../../stages/place/first-share.js';
import type { PredictionCache } from '../../stages/order/set-predictions.js';
import { FirstQueues, laterQueues } from './sub-queues.js';
import type { PlanOptions } from './sub-queues.js';
import { turnsOf } from './turn-order.js';
import type { Queued, Turn, TurnSettings } from './turn-order.js';
import type { Quotas } from '../../share/quotas.js';
import { sufficientShare } from '../../stages/share/share.js';
import type { ObservedRun, Sharing, Start } from '../../view/decision.js';
import { seenPlaces } from '../../view/running.js';
import type { SeenPlace } from '../../view/running.js';
import type { Task } from '../../view/view.js';
import type { Pass, Planned, Planner } from '../../stages/order/plan.js';

/** Runs whose end may be awaited, to correct what they were charged. */
const maxCharged = 10_000;

/** What can be set of the plan. */
interface SubQueueSettings extends PlanOptions, TurnSettings, ShareOptions {
  /** What the tasks that come in an exchange may take more than those that go, as a part of the GPU's memory. */
  tolerance: number;
  /** Slowdown of two best-effort tasks together while nothing is measured of one of them (`FirstShare`); 0: it is predicted. */
  firstSlowdown: number;
  /** The same while nothing is measured of them together, if both have figures and one is known to fill the GPU. */
  fullSlowdown: number;
  /** Exchanges that are tried by prediction in one decision, at most. */
  maxExchanges: number;
  /**
   * Limits of running tasks are moved where that lowers the mean completion on their GPU by this part or lets fewer be
   * late; 1: they are never moved.
   */
  minMoveGain: number;
}

export const subQueueDefaults = {
  minGain: 0.05,
  maxLoad: 2,
  maxLoadOver: 0.6,
  maxLater: 16,
  maxTries: 4,
  backfills: 1,
  bestEffortMs: defaultBestEffortMs,
  overduePart: 0.25,
  urgentSlack: 0.5,
  longestFirst: 1,
  tolerance: 0.02,
  minShareGain: 0.02,
  takeEveryMiss: 0,
  maxExchanges: 4,
  minMoveGain: 0.02,
  firstSlowdown: 0,
  fullSlowdown: 0,
} satisfies SubQueueSettings;

/**
 * FaaShare's spatio-temporal priority queue (section VI, algorithm 1): tasks in turn (the paper: by SLO; ours: see
 * `turnsOf`), partitioned by memory into sub-queues, each task at the share that it fills (the paper: the smallest that meets its SLO; as a share is fixed for the whole of a
 * run, that strands SMs); the last task leaves while a member is predicted to miss its SLO; then exchanges between
 * sub-queues that lower the mean completion. The first sub-queue of each GPU, beside what runs there, starts now, with
 * shares of the quota stage. Ours beyond the paper: fair turns between namespaces, a bound on waiting, tasks that run beside
 * others only where that gains something or they cannot wait, and a limit to what a decision costs.
 */
export function subQueuePlan(
  predictions: PredictionCache,
  quotas: Quotas | undefined,
  firstShare: FirstShare | undefined,
  options: SubQueueSettings,
): Planner {
  const turns = new NamespaceTurns();
  const arrivals = new ArrivalLoad();
  const progress = new Progress();
  const moves = new ShareMoves();
  /** The charge of each task that runs, by its id. */
  const charged = new Map<string, { namespace: string; shareMs: number }>();

  function plan({ view, tasks, event }: Pass): Planned {
    const { at } = view;
    const places = movable(seenPlaces(view), options);
    const first = places.map((place) => firstQueueOn(place, predictions.of(place), at, progress, firstShare));
    arrivals.see(tasks);
    const load = arrivals.part(at, first.length);
    const horizon = horizonAt(first, tasks, at, load);
    const namespaces = new Set<string>();
    for (const { namespace } of tasks) namespaces.add(namespace);
    const order = orderOf({ tasks, places, at, horizonAt: horizon }, namespaces);
    const holdings = new Holdings(places, namespaces);
    const waiting = firstShare === undefined ? new Map<string, number>() : counted(tasks);
    const queues = new FirstQueues(first, holdings, { horizonAt: horizon, arrivalLoad: load, waiting }, options);
    if (event.kind === 'arrival') fillWith(event.task, order, queues);
    else fill(order, queues);
    const begun = first.filter(({ members }) => members.length > 0);
    const sharings = begun.map((queue) => finalShares(queue, quotas, options));
    const starts = begun
      // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- there is one for each queue
      .flatMap((queue, index) => startsOf(queue, at, sharings[index]!.source))
      .reduce(oneStartEach, []);
    charge(starts, first, [...namespaces]);
    const moving = first.filter(({ place }) => place.movesShares);
    // While others wait, what the GPU does in all counts for more than who ends first.
    const minGain = starts.length < tasks.length ? 1 : options.minMoveGain;
    const actions = moves.on(moving, minGain, at);
    progress.note(first, at);
    // What has just started can be moved once it is known by its instance.
    const isNew = moving.some(({ running, members }) => members.length > 0 && running.length + members.length > 1);
    const wakeAt = isNew ? at : moves.nextAt();
    const started = new Set(starts.map(({ task }) => task));
    return {
      starts,
      order: order.map(({ task }) => task.id).filter((id) => !started.has(id)),
      rejected: queues.rejected,
      ...(sharings.some(isShared) && { sharings: sharings.filter(isShared) }),
      ...(actions.length > 0 && { actions }),
      ...(wakeAt !== undefined && { wakeAt }),
    };
  }

  /** Overdue tasks, then the others, with turns between namespaces in each part. */
  function orderOf(queued: Queued, namespaces: ReadonlySet<string>): Turn[] {
    const { overdue, others } = turnsOf(queued, options);
    turns.keepOnly(namespaces);
    const order = [overdue, others].flatMap((part) => turns.order(byNamespace(part, namespaces), turnCost));
    return firstShare === undefined ? order : unknownAfterStrict(order);
  }

  /** The whole algorithm. */
  function fill(order: readonly Turn[], plan: FirstQueues): void {
    const left: Task[] = [];
    const overdue = new Set<string>();
    for (const [index, { task, isOverdue, isCritical }] of order.entries()) {
      if (isOverdue || isCritical) overdue.add(task.id);
      if (plan.add(task, order.length - index - 1)) continue;
      left.push(task);
      if (isOverdue) plan.keepFor(task);
      else if (isCritical) plan.keepSoonest(task);
      keepFromUnknown(task, plan);
    }
    const later = laterQueues(left, plan.queues, options);
    exchangeAll(plan.queues, later, ({ task }) => overdue.has(task.id) || task.gpus > 1);
  }

  /** An arrival makes no room: those that wait would have started. Only the newcomer is tried. */
  function fillWith(id: string, order: readonly Turn[], plan: FirstQueues): void {
    const place = placeOf(id, order);
    for (const { task, isOverdue, isCritical } of order.slice(0, Math.max(0, place))) {
      plan.skip();
      if (isOverdue) plan.keepFor(task);
      else if (isCritical) plan.keepSoonest(task);
      keepFromUnknown(task, plan);
    }
    const newcomer = order[place];
    if (newcomer !== undefined) plan.add(newcomer.task, order.length - place - 1);
  }

  /** Tasks of which nothing is measured do not let one with an SLO in: it has the next GPU that is free. */
  function keepFromUnknown(task: Task, plan: FirstQueues): void {
    if (firstShare !== undefined && task.sloMs !== undefined && task.gpus === 1) plan.keepFromUnknown(task);
  }

  /** The place in turn of the task to try for a newcomer: of a function of which nothing is measured its first one. */
  function placeOf(id: string, order: readonly Turn[]): number {
    const place = order.findIndex(({ task }) => task.id === id);
    const newcomer = order[place]?.task;
    if (newcomer === undefined || firstShare === undefined || !isUnknown(newcomer)) return place;
    const own = functionKeyOf(newcomer);
    return order.findIndex(({ task }) => isUnknown(task) && functionKeyOf(task) === own);
  }

  function exchangeAll(
    first: readonly SubQueue[],
    later: readonly SubQueue[],
    isPinned: (member: Member) => boolean,
  ): void {
    let left = options.maxExchanges;
    const { tolerance } = options;
    const all = [...first, ...later];
    for (const [at, queue] of all.entries()) {
      for (const other of all.slice(Math.max(at + 1, first.length))) {
        if (exchange(queue, other, all, { tolerance, isPinned }) === 'none') continue;
        left -= 1;
        if (left <= 0) return;
      }
    }
  }

  function charge(starts: readonly Start[], first: readonly SubQueue[], namespaces: readonly string[]): void {
    if (starts.length === 0) return;
    const tasks = new Map(first.flatMap(({ members }) => members.map(({ task }) => [task.id, task])));
    for (const { task: id, share } of starts) {
      const task = tasks.get(id);
      if (task === undefined) continue;
      const cost = costOf(task, share);
      turns.started(task.namespace, cost, namespaces);
      charged.set(id, { namespace: task.namespace, shareMs: cost });
    }
    for (const id of charged.keys()) {
      if (charged.size <= maxCharged) return;
      charged.delete(id);
    }
  }

  /** What was estimated of a run is made good. */
  function observe({ task, share, ranMs }: ObservedRun): void {
    const estimated = charged.get(task.id);
    charged.delete(task.id);
    if (estimated === undefined || !(ranMs >= 0)) return;
    turns.correct(estimated.namespace, share * ranMs * task.gpus - estimated.shareMs);
  }

  /** Gives the charge back. */
  function returned(task: string): void {
    const cost = charged.get(task);
    charged.delete(task);
    if (cost !== undefined) turns.correct(cost.namespace, -cost.shareMs);
  }

  /** Charges of running tasks are left out: they correct later turns, and no decision reads them. */
  function saved(): SavedPlan {
    return { turns: turns.saved(), arrivals: arrivals.saved(), progress: progress.saved(), moves: moves.saved() };
  }

  function restore(state: unknown): void {
    const plan = state as SavedPlan;
    turns.restore(plan.turns);
    arrivals.restore(plan.arrivals);
    progress.restore(plan.progress);
    moves.restore(plan.moves);
  }

  return { plan, moves: options.minMoveGain < 1, observe, returned, saved, restore };
}

interface SavedPlan {
  turns: SavedTurns;
  arrivals: SavedArrivalLoad;
  progress: [string, Seen][];
  moves: SavedMoves;
}

/** What a task takes of its namespace's turn, share-milliseconds. */
function costOf({ soloMs = unmeasuredMs, gpus }: Task, share: number): number {
  return Math.max(1, share * soloMs * gpus);
}

function turnCost({ task }: Turn): number {
  return costOf(task, task.share ?? sufficientShare(task));
}

function byNamespace(turns: readonly Turn[], namespaces: ReadonlySet<string>): NamespaceQueue<Turn>[] {
  if (namespaces.size === 1) return Array.from(namespaces, (namespace) => ({ namespace, waiting: turns }));
  const found = groupedBy(turns, ({ task }) => task.namespace);
  return Array.from(found, ([namespace, waiting]) => ({ namespace, waiting }));
}

/** Turns in which tasks of which nothing is measured, unless they are overdue, come after the last one with an SLO. */
function unknownAfterStrict(order: Turn[]): Turn[] {
  const last = order.findLastIndex(({ task }) => task.sloMs !== undefined);
  if (last < 0) return order;
  const before = order.slice(0, last + 1);
  const isLater = ({ task, isOverdue }: Turn): boolean => !isOverdue && isUnknown(task);
  const later = before.filter(isLater);
  return later.length === 0 ? order : [...before.filter((turn) => !isLater(turn)), ...later, ...order.slice(last + 1)];
}

/** Tasks by function. */
function counted(tasks: readonly Task[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const task of tasks) {
    const key = functionKeyOf(task);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

function startsOf(queue: SubQueue, at: number, source: Sharing['source']): Start[] {
  const { endsAt } = outlookOf(queue);
  return queue.members.map(({ task, share }, index) => ({
    task: task.id,
    gpu: queue.place.id,
    share,
    // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- an outlook has an end for each running task and member
    ...(task.soloMs !== undefined && { predictedMs: endsAt[queue.running.length + index]! - at }),
    reason: `${besideOf(queue, task)}; share: ${source}`,
  }));
}

/** What a task starts beside; another namespace's function is not named. */
function besideOf(queue: SubQueue, task: Task): string {
  const { place, firstShare, running, members } = queue;
  const others = running.length + members.length - 1;
  if (others !== 1 || firstShare?.isUnmeasured(place, membersOf(queue), queue.startsAt) !== true)
    return `beside ${others} others`;
  const other = membersOf(queue).find((member) => member.task !== task);
  const isOwn = other?.task.namespace === task.namespace;
  return `beside ${isOwn ? other.task.function : 'a function of another namespace'}: nothing measured yet`;
}

/** Whether tasks are on a GPU together. */
function isShared({ tasks }: Sharing): boolean {
  return tasks > 1;
}

/** The places as a plan sees them that moves shares, or not. */
function movable(places: readonly SeenPlace[], { minMoveGain }: SubQueueSettings): readonly SeenPlace[] {
  return minMoveGain < 1 ? places : places.map((one) => (one.movesShares ? { ...one, movesShares: false } : one));
}

/** A task on several GPUs is one start, with the smallest of its shares. */
function oneStartEach(starts: Start[], next: Start): Start[] {
  const known = starts.findIndex(({ task }) => task === next.task);
  const one = starts[known];
  if (one === undefined) starts.push(next);
  else starts[known] = { ...one, alsoOn: [...(one.alsoOn ?? []), next.gpu], share: Math.min(one.share, next.share) };
  return starts;
}

/**
 * When the GPUs have done all that runs and waits, on the snapshot's clock: no sooner than the longest task allows, and
 * later the more of their time arrivals take (`load`: 0 to 1; the end of the busy period of a fluid queue). Infinity where
 * they take all of it.
 */
function horizonAt(queues: readonly SubQueue[], waiting: readonly Task[], at: number, load: number): number {
  let workMs = 0;
  let longestMs = 0;
  for (const queue of queues) {
    for (const { leftMs, startMs } of residentsOf(queue)) {
      workMs += leftMs + startMs;
      longestMs = Math.max(longestMs, leftMs + startMs);
    }
  }
  for (const task of waiting) {
    workMs += workOf(task);
    longestMs = Math.max(longestMs, task.soloMs ?? unmeasuredMs);
  }
  if (load >= 1) return Infinity;
  return at + Math.max(longestMs, workMs / (queues.length * (1 - load)));
}

/** State of an ArrivalLoad. */
interface SavedArrivalLoad {
  lastAt?: number;
  gapMs?: number;
  workMs: number;
  newest?: { gapMs: number; workMs: number };
}

/** Weight of the newest arrival in the smoothed ones. */
const weight = 0.1;

/**
 * How much of the GPUs' time arrivals take, from those seen so far. What comes at one instant is one arrival, so that a
 * batch that is there at the start says nothing of what is still to come.
 */
class ArrivalLoad {
  private lastAt: number | undefined;
  /** Smoothed. */
  private gapMs: number | undefined;
  private workMs = 0;
  /** Of the newest instant, which may not have been seen whole yet. */
  private newest: { gapMs: number; workMs: number } | undefined;

  /** Takes notice of the tasks that have arrived since it was told last. */
  see(waiting: readonly Task[]): void {
    const since = this.lastAt;
    const fresh = waiting.filter(({ arrivedAt }) => since === undefined || arrivedAt > since);
    fresh.sort((one, other) => one.arrivedAt - other.arrivedAt);
    for (const task of fresh) {
      const { arrivedAt } = task;
      if (this.lastAt === undefined) this.lastAt = arrivedAt;
      if (arrivedAt > this.lastAt) {
        this.count();
        this.newest = { gapMs: arrivedAt - this.lastAt, workMs: 0 };
        this.lastAt = arrivedAt;
      }
      if (this.newest !== undefined) this.newest.workMs += workOf(task);
    }
  }

  /** The part of the time of `gpus` GPUs that arrivals take at `at`; 0 before the second one. */
  part(at: number, gpus: number): number {
    if (this.newest === undefined || this.lastAt === undefined) return 0;
    const gapMs = mix(this.gapMs, this.newest.gapMs);
    const workMs = this.gapMs === undefined ? this.newest.workMs : mix(this.workMs, this.newest.workMs);
    // That nothing has come for long says that less comes.
    return workMs / (Math.max(gapMs, at - this.lastAt) * gpus);
  }

  /** The state, for `restore`. */
  saved(): SavedArrivalLoad {
    const { lastAt, gapMs, workMs, newest } = this;
    return {
      ...(lastAt !== undefined && { lastAt }),
      ...(gapMs !== undefined && { gapMs }),
      ...(newest !== undefined && { newest: { ...newest } }),
      workMs,
    };
  }

  /** Takes the state of another one. */
  restore({ lastAt, gapMs, workMs, newest }: SavedArrivalLoad): void {
    this.lastAt = lastAt;
    this.gapMs = gapMs;
    this.workMs = workMs;
    this.newest = newest && { ...newest };
  }

  private count(): void {
    if (this.newest === undefined) return;
    const { gapMs, workMs } = this.newest;
    this.workMs = this.gapMs === undefined ? workMs : mix(this.workMs, workMs);
    this.gapMs = mix(this.gapMs, gapMs);
  }
}

/** Time on GPUs that a task takes alone, ms. */
function workOf({ soloMs = unmeasuredMs, gpus }: Task): number {
  return soloMs * gpus;
}

function mix(known: number | undefined, newest: number): number {
  return known === undefined ? newest : known + weight * (newest - known);
}
