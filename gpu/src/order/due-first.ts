import { deadlineAt } from '../view/view.js';
import { inTurn, isOverdue } from './earliest-deadline.js';
import type { Order } from './order.js';

/**
 * By deadline, where best effort has one too, and an SLO that has passed counts no more; who has waited for too long goes
 * before all others and is not overtaken.
 */
export const dueFirst: Order = (tasks, at) => {
  const turns = tasks.map((task) => ({
    task,
    arrivedMs: task.arrivedAt,
    sloMs: deadlineAt(task) < at ? undefined : task.sloMs,
  }));
  return inTurn(turns, at).map((turn) => ({ task: turn.task, isOverdue: isOverdue(turn, at) }));
};
