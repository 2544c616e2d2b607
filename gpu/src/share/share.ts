import type { Grant, Seat } from '../place/place.js';
import type { Task } from '../view/view.js';

/** The stage that says what part of a GPU that has the memory a task would get; a text says why nothing. */
export type ShareOut = (task: Task, seat: Seat, at: number) => Grant | string;

/** A share that is all that the task should have. */
export function granted(share: number): Grant {
  return { share, lacks: 0 };
}
