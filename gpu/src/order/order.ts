import type { Task } from '../view/view.js';

/** A task in its turn. */
export interface Turn {
  task: Task;
  /** No other task may overtake it: the GPUs that could serve it are kept for it. */
  isOverdue: boolean;
}

/** The stage that says who goes first. */
export type Order = (tasks: readonly Task[], at: number) => Turn[];

/** Orders by a comparison (below 0: `one` goes first), then by arrival. No task is ever overdue. */
export function comparing(compare: (one: Task, other: Task, at: number) => number): Order {
  return (tasks, at) =>
    [...tasks]
      .sort((one, other) => compare(one, other, at) || one.arrivedAt - other.arrivedAt)
      .map((task) => ({ task, isOverdue: false }));
}
