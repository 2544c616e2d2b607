import { deadlineAt } from '../view/view.js';
import { inTurn, isOverdue } from './earliest-deadline.js';
import type { Order } from './order.js';

/**
 * By deadline; best effort has one, too, and a passed SLO does not count. A task that has waited for too long goes first and is
 * not overtaken.
 */
export const dueFirst: Order = (tasks, at) => {
  const turns = tasks.map((task) => ({
    task,
    arrivedMs: task.arrivedAt,
    sloMs: deadlineAt(task) < at ? undefined : task.sloMs,
  }));
  return inTurn(turns, at).map((turn) => ({ task: turn.task, isOverdue: isOverdue(turn, at) }));
};
