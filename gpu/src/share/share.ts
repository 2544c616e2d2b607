import type { Grant, Seat } from '../place/place.js';
import type { Task } from '../view/view.js';

/** The stage that gives a task a part of a GPU which has memory for it, or the reason for a refusal. */
export type ShareOut = (task: Task, seat: Seat, at: number) => Grant | string;

/** A share that is all that the task should have. */
export function granted(share: number): Grant {
  return { share, lacks: 0 };
}
