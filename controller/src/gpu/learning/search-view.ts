import type { DeviceMode } from '@gpuwhisk/common/gpu';

/**
 * How far the search for a set's shares is: not asked for; asked for, and it waits until it was often enough or for a GPU that
 * idles; impossible, for what its functions lack; a job that waits or runs; failed; or done, with nothing more to gain.
 */
export type SearchStage = 'none' | 'asked' | 'impossible' | 'waiting' | 'running' | 'failed' | 'done';

/** The search for a set's shares. */
export interface SearchState {
  stage: SearchStage;
  /** How often the set was formed since it was last searched for, or since the controller started. */
  asked?: number;
  /** The GPU or MIG instance that it is measured on. */
  gpu?: string;
  /** Of its job, begun so far. */
  attempts?: number;
  /** Why it failed. */
  reason?: string;
}

/** A set that is to be searched for, or was. */
export interface SearchedSet {
  /** Its key in the table of shares. */
  key: string;
  gpuType: string;
  mode: DeviceMode;
  /** `problem`: why a search must not run it. */
  jobs: readonly { function: string; version: string; problem?: string }[];
  search: SearchState;
}
