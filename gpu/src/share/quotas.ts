import type { DeviceMode } from '@gpuwhisk/common/gpu';
import type { WorkloadFeatures } from '../predict/slowdown-predictor.js';

/** A job of a set that shares a GPU. */
export interface QuotaJob {
  /** `/namespace/action` of its code. */
  function: string;
  /** Of the function; what is learned holds for one. */
  version: string;
  /** Requests that run together. */
  batch: number;
  /** Time alone at 100 %, ms; absent: it has not been measured. */
  soloMs?: number;
  /** Absent: it has not been profiled. */
  features?: WorkloadFeatures;
}

/** The shares that a set is to have. */
export interface QuotaChoice {
  /** By job, in the order of the set: fractions, each a share class. */
  shares: number[];
  /** Measured for this very set, for the one most like it, or the smallest classes that are predicted to do. */
  source: 'hit' | 'nearest' | 'guardrail';
  /** Jobs, by their place in the set, that no class is known or predicted to bring within their budget. */
  unmet: number[];
}

/** By job, the share that it has and keeps, a fraction; undefined or absent: one is to be found. */
export type FixedShares = readonly (number | undefined)[];

/** Decides how jobs that run together share a GPU (FaaShare, section VII). */
export interface Quotas {
  /**
   * Shares for `set` on a GPU of type `gpuType` (for a MIG instance `gpuTypeOf` gives it). `budgetsMs` has, by job,
   * the time from its start that its deadline leaves; Infinity where it has none. What is measured counts where those
   * with a fixed share had just that.
   */
  shareFor(
    set: readonly QuotaJob[],
    gpuType: string,
    mode: DeviceMode,
    budgetsMs: readonly number[],
    fixed?: FixedShares,
  ): QuotaChoice;
}

/** What a table calls a GPU, or an instance of one: instances of one profile are GPUs of a type of their own. */
export function gpuTypeOf(device: { type: string }, slice?: { profile: string }): string {
  return slice === undefined ? device.type : `${device.type}:${slice.profile}`;
}
