import type { ReplayJob } from './replay.js';

/** A job that has run. Times in ms of the replay. */
export interface FinishedJob {
  job: ReplayJob;
  startedAt: number;
  finishedAt: number;
  gpu: string;
}

/** Sums over the whole of a replay. */
export interface RunTotals {
  elapsedMs: number;
  /** GPUs times elapsed time. */
  gpuMs: number;
  /** The part of it in which a GPU held a job. */
  occupiedMs: number;
  /** GPU time weighted by the part of the SMs in use. */
  usedMs: number;
  /** Solo time that was worked off. */
  progressMs: number;
  /** Free memory over time, while jobs wait. */
  freeMiBMs: number;
  /** The part of it on GPUs where no waiting job fits. */
  strandedMiBMs: number;
}

/** Nothing has run. */
export function newTotals(): RunTotals {
  return { elapsedMs: 0, gpuMs: 0, occupiedMs: 0, usedMs: 0, progressMs: 0, freeMiBMs: 0, strandedMiBMs: 0 };
}
