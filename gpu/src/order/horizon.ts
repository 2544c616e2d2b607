// How long the GPUs are busy: the end of all running and waiting work, and the load by arrivals.
import type { Task } from '../view/view.js';
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

/** State of an ArrivalLoad. */
export interface SavedArrivalLoad {
  lastAt?: number;
  gapMs?: number;
  workMs: number;
  newest?: { gapMs: number; workMs: number };
}

/** Weight of the newest arrival in the smoothed ones. */
const weight = 0.1;

/**
 * How much of the GPUs' time arrivals take, from those seen so far. What comes at one instant is one arrival, so that a
 * batch that is there at the start says nothing of what is still to come.
 */
export class ArrivalLoad {
  private lastAt: number | undefined;
  /** Smoothed. */
  private gapMs: number | undefined;
  private workMs = 0;
  /** Of the newest instant, which may not have been seen whole yet. */
  private newest: { gapMs: number; workMs: number } | undefined;

  /** Takes notice of the tasks that have arrived since it was told last. */
  see(waiting: readonly Task[]): void {
    const since = this.lastAt;
    const fresh = waiting.filter(({ arrivedAt }) => since === undefined || arrivedAt > since);
    fresh.sort((one, other) => one.arrivedAt - other.arrivedAt);
    for (const task of fresh) {
      const { arrivedAt } = task;
      if (this.lastAt === undefined) this.lastAt = arrivedAt;
      if (arrivedAt > this.lastAt) {
        this.count();
        this.newest = { gapMs: arrivedAt - this.lastAt, workMs: 0 };
        this.lastAt = arrivedAt;
      }
      if (this.newest !== undefined) this.newest.workMs += workOf(task);
    }
  }

  /** The part of the time of `gpus` GPUs that arrivals take at `at`; 0 before the second one. */
  part(at: number, gpus: number): number {
    if (this.newest === undefined || this.lastAt === undefined) return 0;
    const gapMs = mix(this.gapMs, this.newest.gapMs);
    const workMs = this.gapMs === undefined ? this.newest.workMs : mix(this.workMs, this.newest.workMs);
    // That nothing has come for long says that less comes.
    return workMs / (Math.max(gapMs, at - this.lastAt) * gpus);
  }

  /** The state, for `restore`. */
  saved(): SavedArrivalLoad {
    const { lastAt, gapMs, workMs, newest } = this;
    return {
      ...(lastAt !== undefined && { lastAt }),
      ...(gapMs !== undefined && { gapMs }),
      ...(newest !== undefined && { newest: { ...newest } }),
      workMs,
    };
  }

  /** Takes the state of another one. */
  restore({ lastAt, gapMs, workMs, newest }: SavedArrivalLoad): void {
    this.lastAt = lastAt;
    this.gapMs = gapMs;
    this.workMs = workMs;
    this.newest = newest && { ...newest };
  }

  private count(): void {
    if (this.newest === undefined) return;
    const { gapMs, workMs } = this.newest;
    this.workMs = this.gapMs === undefined ? workMs : mix(this.workMs, workMs);
    this.gapMs = mix(this.gapMs, gapMs);
  }
}

/** Time on GPUs that a task takes alone, ms. */
function workOf({ soloMs = unmeasuredMs, gpus }: Task): number {
  return soloMs * gpus;
}

function mix(known: number | undefined, newest: number): number {
  return known === undefined ? newest : known + weight * (newest - known);
}
