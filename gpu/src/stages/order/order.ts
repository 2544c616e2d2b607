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

/** The shortest first; one that has not been measured goes last. */
export const shortestFirst = comparing((one, other) => lengthMs(one) - lengthMs(other));

function lengthMs({ soloMs }: Task): number {
  return soloMs ?? Number.MAX_VALUE;
}
