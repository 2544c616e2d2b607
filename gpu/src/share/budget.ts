import type { Task } from '../view/view.js';

/** What is left for a task's start and run, ms; Infinity for best effort and for one that is late anyway. */
export function budgetMs({ arrivedAt, sloMs, startMs = 0 }: Task, at: number): number {
  if (sloMs === undefined) return Infinity;
  const left = arrivedAt + sloMs - at - startMs;
  return left > 0 ? left : Infinity;
}
