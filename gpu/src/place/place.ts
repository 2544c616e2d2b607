import type { Task } from '../view/view.js';
import type { Room } from './room.js';

/** A GPU with the tasks that run there or were placed there in this decision. */
export interface Seat extends Room {
  residents: { task: Task; share: number }[];
}

/** The share that a GPU would give a task. */
export interface Grant {
  /** Fraction of the SMs, 0 < share ≤ 1. */
  share: number;
  /** By how much that is less than the task should have. */
  lacks: number;
}

/** The stage that scores a GPU which has memory and a share for a task: the lowest score wins. */
export type Place = (task: Task, seat: Seat, grant: Grant) => number;

/** Shares are sums of tenths, which floating point does not hold exactly. */
const rounding = 1e-9;

/** Whether a GPU has `share` of its SMs to give away. */
export function hasShare({ load }: Room, share: number): boolean {
  return load + share <= 1 + rounding;
}
