import type { Task } from '../view/view.js';
import { workOf } from './arrival-load.js';
import { residentsOf, unmeasuredMs } from './sub-queue.js';
import type { SubQueue } from './sub-queue.js';

/**
 * When the GPUs have done all that runs and waits, on the snapshot's clock: no sooner than the longest task allows, and
 * later the more of their time arrivals take (`load`: 0 to 1; the end of the busy period of a fluid queue). Infinity where
 * they take all of it.
 */
export function horizonAt(queues: readonly SubQueue[], waiting: readonly Task[], at: number, load: number): number {
  let workMs = 0;
  let longestMs = 0;
  for (const queue of queues) {
    for (const { leftMs, startMs } of residentsOf(queue)) {
      workMs += leftMs + startMs;
      longestMs = Math.max(longestMs, leftMs + startMs);
    }
  }
  for (const task of waiting) {
    workMs += workOf(task);
    longestMs = Math.max(longestMs, task.soloMs ?? unmeasuredMs);
  }
  if (load >= 1) return Infinity;
  return at + Math.max(longestMs, workMs / (queues.length * (1 - load)));
}

/** Whether a task would end after all others if it did not start now: it is as long as all of the rest takes the GPUs. */
export function isCritical(task: Task, at: number, horizon: number): boolean {
  return at + (task.soloMs ?? 0) >= horizon;
}
