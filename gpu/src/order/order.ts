import type { Task } from '../view/view.js';

/** A task in its turn. */
export interface Turn {
  task: Task;
  /** Nobody overtakes it: what could serve it is kept for it. */
  isOverdue: boolean;
}

/** The stage that says who goes first. */
export type Order = (tasks: readonly Task[], at: number) => Turn[];

/** The order of a comparison, below 0 for `one`; equal ones as they came. Nobody is ever overdue. */
export function comparing(compare: (one: Task, other: Task, at: number) => number): Order {
  return (tasks, at) =>
    [...tasks]
      .sort((one, other) => compare(one, other, at) || one.arrivedAt - other.arrivedAt)
      .map((task) => ({ task, isOverdue: false }));
}
