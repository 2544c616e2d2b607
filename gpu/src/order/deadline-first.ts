import { deadlineAt } from '../view/view.js';
import type { Task } from '../view/view.js';
import { comparing } from './order.js';

/** By deadline, best effort last. */
export const deadlineFirst = comparing((one, other) => dueAt(one) - dueAt(other));

function dueAt(task: Task): number {
  return task.sloMs === undefined ? Number.MAX_VALUE : deadlineAt(task);
}
