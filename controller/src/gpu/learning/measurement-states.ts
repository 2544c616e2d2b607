// States of measurements on idle GPUs: searches for shares, trials of functions, and pairs of functions.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import type { WantedFunction } from './function-trials.js';

/**
 * Stage of the search for a set's shares. `asked`: requested, but not often enough yet, or no GPU is idle. `impossible`: a
 * function must not be run. `waiting` and `running`: states of its job. `done`: further measurements gain nothing.
 */
type SearchStage = 'none' | 'asked' | 'impossible' | 'waiting' | 'running' | 'failed' | 'done';

/** The search for a set's shares. */
export interface SearchState {
  stage: SearchStage;
  /** How often the set was formed since its last search or since the start of the controller. */
  asked?: number;
  /** UUID of the GPU or MIG instance of the search. */
  gpu?: string;
  /** Attempts of the search's job that have begun. */
  attempts?: number;
  /** Reason of the failure. */
  reason?: string;
}

/** A set with a pending, running or finished search. */
export interface SearchedSet extends GpuKind {
  /** The set's key in the table of shares. */
  key: string;
  /** `problem`: why a search must not run the function. */
  jobs: readonly { function: string; version: string; problem?: string }[];
  search: SearchState;
}

/** The jobs that run trials. */
export interface ProfilingJobs {
  /** Whether samples are run here on any GPU whose SMs are shared by MPS. */
  isPossible(): boolean;
  /** Whether trials of a function run here. */
  isRunning(name: string): boolean;
  stateOf(wanted: WantedFunction, kind: GpuKind): SearchState | undefined;
}

/** The measurement of pairs of functions on idle GPUs. */
export interface MeasurementState {
  /** Functions that were called and allow it. */
  functions: number;
  /** Why the others must not be run. */
  problems: { function: string; problem: string }[];
  /** Pairs on the present kinds of GPUs that are to be measured, and how many of them were. */
  chosen: number;
  measured: number;
  /** Time of GPUs that measurements took in the last hour, and may take, s. */
  spentS: number;
  budgetS: number;
}
