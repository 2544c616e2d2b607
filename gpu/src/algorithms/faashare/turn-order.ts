// The order in which FaaShare's queue serves waiting tasks, before namespaces take turns.
import { deadlineAt } from '../../view/view.js';
import type { RunningTask, Task } from '../../view/view.js';
import { sufficientShare } from '../../stages/share/share.js';
import { unmeasuredMs } from './sub-queue.js';

/** A task in its turn. */
export interface Turn {
  task: Task;
  /** No task overtakes it: GPUs are kept for it. */
  isOverdue: boolean;
  /** Whether it would end after all others if it did not start now. */
  isCritical: boolean;
  /** Turns are ordered by rank, then by key. */
  rank: number;
  /** A time or a duration, ms. */
  key: number;
}

/** Settings of the order. */
export interface TurnSettings {
  /** Shortest wait after which a task is overdue, ms. */
  bestEffortMs: number;
  /** Part of the GPUs, 0 to 1, that overdue best effort takes at most while a strict task waits that can meet its SLO. */
  overduePart: number;
  /** Slack below which a strict task is urgent, in mean times alone of the waiting tasks: the rest of a run that goes first. */
  urgentSlack: number;
  /** 1: a task that would end after all others goes first; 0: it does not. */
  longestFirst: number;
}

/** What the order is computed from. */
export interface Queued {
  tasks: readonly Task[];
  places: readonly { running: readonly RunningTask[] }[];
  /** Now, ms. */
  at: number;
  /** When all that runs and waits will have ended, ms. */
  horizonAt: number;
}

const ranks = { critical: 0, urgent: 1, shortest: 2, overdue: 3, behindOverdue: 4 } as const;

/** A best-effort task is overdue after so many times its solo time (an SLO in the paper's experiments, section IX-A). */
const bestEffortFactor = 4;

/**
 * The turns of waiting tasks, in two parts that are served one after the other: overdue tasks, the first to become
 * overdue first, then the others. The others are ordered thus: the longest task first, if it would end after all
 * others; then strict tasks that miss their SLO unless they go by deadline now; then the shortest. Overdue best effort
 * beyond `overduePart` of the GPUs stays among the others, behind strict tasks and before younger best effort.
 */
export function turnsOf(queued: Queued, settings: TurnSettings): { overdue: Turn[]; others: Turn[] } {
  const { tasks, places, at, horizonAt } = queued;
  const { first, left } = overdueOf(queued, settings);
  const others = first.size === 0 ? tasks : tasks.filter((task) => !first.has(task));
  const urgent = urgentOf(others, places.length, at, settings);
  const isCritical = (task: Task): boolean => settings.longestFirst !== 0 && endsLast(task, at, horizonAt);
  const turns = others.map((task): Turn => {
    const isLongest = isCritical(task);
    const rank = isLongest ? ranks.critical : urgent.has(task) ? ranks.urgent : rankAmong(task, left);
    return { task, isOverdue: false, isCritical: isLongest, rank, key: keyOf(task, rank, left) };
  });
  turns.sort(byTurn);
  const overdue = Array.from(first, ([task, key]): Turn => {
    return { task, isOverdue: true, isCritical: isCritical(task), rank: 0, key };
  });
  return { overdue, others: turns };
}

/** Turns that are alike go by deadline, best effort last, then by arrival. */
function byTurn(one: Turn, other: Turn): number {
  const byKey = one.rank - other.rank || one.key - other.key;
  if (byKey !== 0) return byKey;
  if ((one.task.sloMs === undefined) !== (other.task.sloMs === undefined)) return one.task.sloMs === undefined ? 1 : -1;
  const byDeadline = one.task.sloMs === undefined ? 0 : deadlineAt(one.task) - deadlineAt(other.task);
  return byDeadline || one.task.arrivedAt - other.task.arrivedAt;
}

/** Overdue tasks in their order, each with the time since when it is: those that go first, and those left for the GPUs' part. */
function overdueOf(
  { tasks, places, at }: Queued,
  settings: TurnSettings,
): { first: Map<Task, number>; left: Map<Task, number> } {
  const passed: [Task, number][] = [];
  for (const task of tasks) {
    const since = overdueAt(task, settings);
    if (since <= at) passed.push([task, since]);
  }
  const first = new Map<Task, number>();
  const left = new Map<Task, number>();
  if (passed.length === 0) return { first, left };
  passed.sort((one, other) => one[1] - other[1]);
  let shares = tasks.some((task) => canMeet(task, at))
    ? settings.overduePart * places.length - heldByOverdue(places, settings)
    : Infinity;
  for (const [task, since] of passed) {
    if (task.sloMs !== undefined) first.set(task, since);
    else if (shares <= 0) left.set(task, since);
    else {
      first.set(task, since);
      shares -= task.gpus * (task.share ?? sufficientShare(task));
    }
  }
  return { first, left };
}

/** From when on no other task overtakes it, ms: max(30 s, 2 · SLO) after its arrival, for best effort max(30 s, 4 · solo). */
function overdueAt({ arrivedAt, sloMs, soloMs = 0 }: Task, { bestEffortMs }: TurnSettings): number {
  return arrivedAt + Math.max(bestEffortMs, sloMs === undefined ? bestEffortFactor * soloMs : 2 * sloMs);
}

/** Whether a strict task can end in time, alone on a GPU from now on. */
function canMeet(task: Task, at: number): boolean {
  return task.sloMs !== undefined && at + lengthOf(task) <= deadlineAt(task);
}

/** Shares of best effort that runs and was overdue when it started. */
function heldByOverdue(places: Queued['places'], settings: TurnSettings): number {
  let held = 0;
  for (const { running } of places) {
    for (const { task, share, startedAt } of running) {
      if (task.sloMs === undefined && overdueAt(task, settings) <= startedAt) held += share;
    }
  }
  return held;
}

/**
 * Strict tasks that have to go by deadline: of each namespace up to the last one that would end too late after those before
 * it, on an equal part of the GPUs for each namespace.
 */
function urgentOf(tasks: readonly Task[], gpus: number, at: number, { urgentSlack }: TurnSettings): Set<Task> {
  const strict = tasks.filter((task) => canMeet(task, at));
  if (strict.length === 0) return new Set();
  strict.sort((one, other) => deadlineAt(one) - deadlineAt(other));
  const slackMs = (urgentSlack * tasks.reduce((sum, task) => sum + lengthOf(task), 0)) / tasks.length;
  const part = gpus / new Set(tasks.map(({ namespace }) => namespace)).size;
  const queues = new Map<string, { workMs: number; urgent: number; tasks: Task[] }>();
  for (const task of strict) {
    const queue = queues.get(task.namespace) ?? { workMs: 0, urgent: 0, tasks: [] };
    queues.set(task.namespace, queue);
    queue.tasks.push(task);
    if (at + queue.workMs / part + lengthOf(task) + slackMs >= deadlineAt(task)) queue.urgent = queue.tasks.length;
    queue.workMs += lengthOf(task) * task.gpus;
  }
  return new Set([...queues.values()].flatMap((queue) => queue.tasks.slice(0, queue.urgent)));
}

function rankAmong(task: Task, waitsBehind: ReadonlyMap<Task, number>): number {
  if (waitsBehind.size === 0 || task.sloMs !== undefined) return ranks.shortest;
  return waitsBehind.has(task) ? ranks.overdue : ranks.behindOverdue;
}

function keyOf(task: Task, rank: number, overdue: ReadonlyMap<Task, number>): number {
  if (rank === ranks.urgent) return deadlineAt(task);
  return (rank === ranks.overdue ? overdue.get(task) : undefined) ?? lengthOf(task);
}

/** Time alone with its start, ms. */
function lengthOf({ soloMs = unmeasuredMs, startMs = 0 }: Task): number {
  return startMs + soloMs;
}

/** Whether a task would end after all others if it did not start now: it is as long as all of the rest takes the GPUs. */
function endsLast({ soloMs = 0 }: Task, at: number, horizonAt: number): boolean {
  return at + soloMs >= horizonAt;
}
