import type { Refusal } from '../place/filters/fact-filter.js';
import type { Grant, Seat } from '../place/place.js';
import type { Task } from '../view/view.js';

/** The stage that gives a task a part of a GPU which has memory for it, or refuses it one. */
export type ShareOut = (task: Task, seat: Seat, at: number) => Grant | Refusal;

/** A share that is all that the task should have. */
export function granted(share: number): Grant {
  return { share, lacks: 0 };
}

/** Whether a GPU is refused. */
export function isRefusal(given: Grant | Refusal): given is Refusal {
  return 'reason' in given;
}

/** A refusal with the numbers that decided. */
export function refused(reason: string, numbers: Refusal['numbers']): Refusal {
  return { reason, numbers };
}
