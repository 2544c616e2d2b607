// The stage `order`: its interface, and the orders that are one comparison.
import type { ObservedRun } from '../../view/decision.js';
import type { Ledger } from '../../ledger/ledger.js';
import type { Task, WorkloadState } from '../../view/view.js';
import { deadlineAt } from '../../view/view.js';

/** A task in its turn. */
export interface Turn {
  task: Task;
  /** No other task may overtake it: the GPUs that could serve it are kept for it. */
  isOverdue: boolean;
  /** It is one request of a batch, with the others in their order; absent: it is placed by itself. */
  batch?: { others: readonly Task[]; isFull: boolean };
  /** Its batch is being filled, and starts then at the latest, on the clock of the view, ms; absent: it starts now. */
  waitsUntil?: number;
}

/** The stage that gives the queue order. */
export interface Order {
  /** `at`: now, ms. */
  (tasks: readonly Task[], at: number, workloads: readonly WorkloadState[] | undefined, ledger: Ledger): Turn[];
  /** It gathers requests into batches, so that none joins an instance before; absent: it does not. */
  readonly gathers?: true;
  /** Learns from a run; absent: it learns nothing. */
  observe?(run: ObservedRun): void;
  /** As in Policy. */
  saved?(): unknown;
  restore?(saved: unknown): void;
}

/** Orders by a comparison (below 0: `one` goes first), then by arrival. No task is ever overdue. */
export function comparing(compare: (one: Task, other: Task, at: number) => number): Order {
  return (tasks, at) =>
    [...tasks]
      .sort((one, other) => compare(one, other, at) || one.arrivedAt - other.arrivedAt)
      .map((task) => ({ task, isOverdue: false }));
}

/** First come, first served. */
export const fifo = comparing((one, other) => one.arrivedAt - other.arrivedAt);

/** Tasks with an SLO first, then by arrival. */
export const strictFirst = comparing((one, other) => Number(isStrict(other)) - Number(isStrict(one)));

function isStrict({ sloMs }: Task): boolean {
  return sloMs !== undefined;
}

/** By deadline, best effort last. */
export const deadlineFirst = comparing((one, other) => dueAt(one) - dueAt(other));

function dueAt(task: Task): number {
  return task.sloMs === undefined ? Number.MAX_VALUE : deadlineAt(task);
}

/**
 * Tasks that can still meet their SLO alone on a GPU, by deadline; then the others, the shortest first (ElasticFlow, Gu and
 * others, ASPLOS 2023: best effort gets the remaining GPUs by marginal return).
 */
export const meetableFirst = comparing((one, other, at) => {
  const admitted = Number(canMeet(other, at)) - Number(canMeet(one, at));
  if (admitted !== 0) return admitted;
  return canMeet(one, at)
    ? one.arrivedAt + (one.sloMs ?? 0) - other.arrivedAt - (other.sloMs ?? 0)
    : (one.soloMs ?? Number.MAX_VALUE) - (other.soloMs ?? Number.MAX_VALUE);
});

function canMeet({ arrivedAt, sloMs, soloMs = 0, startMs = 0 }: Task, at: number): boolean {
  return sloMs !== undefined && at + startMs + soloMs <= arrivedAt + sloMs;
}

/** The shortest first; one that has not been measured goes last. */
export const shortestFirst = comparing((one, other) => lengthMs(one) - lengthMs(other));

/** The longest first; one that has not been measured goes last. */
export const longestFirst = comparing((one, other) => (other.soloMs ?? 0) - (one.soloMs ?? 0));

/** The least time to the result first, start included; one that has not been measured goes last. */
export const leastRemainingFirst = comparing((one, other) => remainingMs(one) - remainingMs(other));

function remainingMs(task: Task): number {
  return lengthMs(task) + (task.startMs ?? 0);
}

function lengthMs({ soloMs }: Task): number {
  return soloMs ?? Number.MAX_VALUE;
}

/** The least memory first; one whose need is not known goes last. */
export const leastMemoryFirst = comparing((one, other) => needMiB(one) - needMiB(other));

function needMiB({ memoryMiB }: Task): number {
  return memoryMiB > 0 ? memoryMiB : Number.MAX_VALUE;
}
