// The queue order by deadline, with a bound on starvation.
import { deadlineAt } from '../../view/view.js';
import type { Task } from '../../view/view.js';
import type { Turn } from './order.js';

/** What of a waiting activation decides about its turn. */
interface Waiting {
  /** Epoch ms. */
  arrivedMs: number;
  /** From arrival to result; absent: best effort. */
  sloMs?: number | undefined;
}

/** Best effort enters with a deadline this far off, ms (FaaShare, section VI: the bound on starvation). */
export const defaultBestEffortMs = 30_000;

/** When an activation is due, epoch ms. */
export function dueMs({ arrivedMs, sloMs = defaultBestEffortMs }: Waiting): number {
  return arrivedMs + sloMs;
}

/** Whether it has waited for max(2 × SLO, 30 s), so that no other may overtake it. */
export function isOverdue({ arrivedMs, sloMs }: Waiting, nowMs: number): boolean {
  return nowMs - arrivedMs >= Math.max(2 * (sloMs ?? 0), defaultBestEffortMs);
}

/** The waiting activations in queue order: overdue ones by arrival, then the others by deadline. */
export function inTurn<One extends Waiting>(waiting: readonly One[], nowMs: number): One[] {
  const turn = (one: One): [number, number] => (isOverdue(one, nowMs) ? [0, one.arrivedMs] : [1, dueMs(one)]);
  return waiting
    .map((one) => ({ one, turn: turn(one) }))
    .sort((a, b) => a.turn[0] - b.turn[0] || a.turn[1] - b.turn[1] || a.one.arrivedMs - b.one.arrivedMs)
    .map(({ one }) => one);
}

/**
 * By deadline; best effort has one, too, and a passed SLO does not count. A task that has waited for too long goes first and is
 * not overtaken.
 */
export function dueFirst(tasks: readonly Task[], at: number): Turn[] {
  const turns = tasks.map((task) => ({
    task,
    arrivedMs: task.arrivedAt,
    sloMs: deadlineAt(task) < at ? undefined : task.sloMs,
  }));
  return inTurn(turns, at).map((turn) => ({ task: turn.task, isOverdue: isOverdue(turn, at) }));
}
