import type { Rejection } from '@gpuwhisk/common/gpu';
import type { Action } from './action.js';
import type { PlacementChoice } from './placement-request.js';
import type { GpuState, Task, View } from './view.js';

/** A waiting task that starts now. */
export interface Start {
  task: string;
  gpu: string;
  /** The other GPUs of a task that needs several. */
  alsoOn?: readonly string[];
  /** Its limit: fraction of the GPU, 0 < share ≤ 1. */
  share: number;
  /** What it has whenever it asks, fraction of the GPU, at most `share`; absent: as much as its limit. */
  request?: number;
  /** Predicted time from now to its result, ms; absent where nothing is known of it. */
  predictedMs?: number;
  /** Why it is where it is. */
  reason: string;
  /** The placement that the policy holds in the ledger of its view; absent: none is held yet. */
  choice?: PlacementChoice;
}

/** Alternatives that a decision keeps of a task. */
export const mostRejections = 8;

/** Why a place that another task is to get is refused. */
export const keptForAnother: Pick<Rejection, 'reason' | 'numbers'> = {
  reason: 'kept for one that waits for longer',
  numbers: {},
};

/** Why a task was not placed on a GPU, or not on that one. */
export interface TaskRejection extends Rejection {
  task: string;
}

/** What is to be done now. A task that is named nowhere in it goes on to wait. */
export interface Decision {
  starts: readonly Start[];
  /** Those that will never run, and why; each is answered with an error. */
  refused: readonly { task: string; reason: string }[];
  /** Those that cannot meet their SLO and go on as best effort. */
  bestEffort: readonly string[];
  /** Those that go on to wait, the next one first. */
  order: readonly string[];
  /** At most `mostRejections` a task: first the GPUs that would have done, best first. */
  rejected: readonly TaskRejection[];
  /** What else is to be done; absent: nothing. */
  actions?: readonly Action[];
  /** When to ask again though nothing happens, on the clock of the view, ms; absent: no particular time. */
  wakeAt?: number;
}

/** The decision that changes nothing. */
export function allWait({ waiting }: Pick<View, 'waiting'>): Decision {
  return { starts: [], refused: [], bestEffort: [], order: waiting.map(({ id }) => id), rejected: [] };
}

/** A run that has ended, as it was measured. */
export interface ObservedRun {
  task: Task;
  gpu: Pick<GpuState, 'id' | 'type' | 'mode'>;
  share: number;
  /** From its start to its result without injection or a cold start, ms. */
  ranMs: number;
  /** Who ran beside it, each with the part of its run in which it did; several at once may be told as one, above 1. */
  beside: readonly { task: Task; share: number; part: number }[];
}
