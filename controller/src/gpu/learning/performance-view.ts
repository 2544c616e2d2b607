// Performance data as the API shows it, with the states of searches for shares.
import type { DeviceMode } from '@gpuwhisk/common/gpu';
import type { FunctionProfile } from '@gpuwhisk/gpu/profile/function-profiles';
import { median } from '@gpuwhisk/gpu/profile/fill';
import type { FeatureRecord } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { FillSource } from '@gpuwhisk/gpu/profile/fill';
import { rowKey } from '@gpuwhisk/gpu/share/quota-row';
import type { QuotaRow } from '@gpuwhisk/gpu/share/quota-row';

/** The performance of a function on one kind of GPU, as operators and owners see it. Times in ms. */
export interface FunctionPerformance {
  /** `/namespace/action`. */
  function: string;
  version: string;
  gpuType: string;
  mode: DeviceMode;
  /** Measured figures by name: `smUtil`, `dramUtil`, fractions of the whole GPU. A figure that was not measured is absent. */
  features?: FeatureRecord;
  /** Source of `smUtil`. */
  fillSource?: FillSource;
  /** `measured`: it ran alone; else its time alone was worked out from runs beside others. */
  batches: BatchPerformance[];
}

/** The performance with one batch size. */
interface BatchPerformance {
  batch: number;
  soloMs?: number;
  measured: boolean;
  startMs?: number;
  runs: number;
  /** Times the time alone, medians of the last warm runs beside others; `predicted` with what was known at their ends. */
  slowdown?: { predicted: number; measured: number; runs: number };
}

/** The measurements of a set on one kind of GPU. */
export interface SetPerformance {
  /** Names it where it is to be deleted. */
  id: string;
  gpuType: string;
  mode: DeviceMode;
  /** Absent: nothing was measured. */
  driverMajor?: number;
  /** `problem`: why a search must not run it. */
  jobs: { function: string; version: string; problem?: string }[];
  /** The best first: shares in percent and slowdowns, by job. */
  points: { shares: number[]; slowdowns: number[]; measurements: number }[];
  search: SearchState;
}

/** A predictor in force. */
export interface PredictorSummary {
  gpuType: string;
  mode: DeviceMode;
  version: number;
  /** Runs that it was trained on. */
  sampleCount: number;
  /** Epoch ms. */
  learnedAt?: number;
}

/** The view of a profile; times are medians, ms. */
export function functionView({ batches, ...profile }: FunctionProfile): FunctionPerformance {
  const { function: name, version, gpuType, mode, features, fillSource } = profile;
  return {
    function: name,
    version,
    gpuType,
    mode,
    ...(features !== undefined && { features }),
    ...(fillSource !== undefined && { fillSource }),
    batches: batches.map(({ batch, soloMs, isAlone, startMs, beside = [] }) => {
      const [solo, start] = [median(soloMs), median(startMs)];
      const predicted = median(beside.map((run) => run.predicted));
      const measured = median(beside.map((run) => run.measured));
      return {
        batch,
        measured: isAlone,
        runs: soloMs.length,
        ...(solo !== undefined && { soloMs: solo }),
        ...(start !== undefined && { startMs: start }),
        ...(predicted !== undefined &&
          measured !== undefined && { slowdown: { predicted, measured, runs: beside.length } }),
      };
    }),
  };
}

/** The view of a measured set, and of the search for its shares if there is one. */
export function quotaView(row: QuotaRow, searched?: SearchedSet): SetPerformance {
  const { gpuType, mode, driverMajor, jobs, points } = row;
  const stage = row.searched ? 'done' : 'none';
  return {
    id: rowKey(row),
    gpuType,
    mode,
    driverMajor,
    search: searched?.search ?? { stage },
    jobs: jobs.map(({ function: name, version }, at) => {
      const problem = searched?.jobs[at]?.problem;
      return { function: name, version, ...(problem !== undefined && { problem }) };
    }),
    points: points.map(({ shares, slowdowns, samples }) => ({
      shares: [...shares],
      slowdowns: [...slowdowns],
      measurements: samples.length,
    })),
  };
}

/** A set of which nothing was measured yet. */
export function unmeasuredView({ key: id, gpuType, mode, jobs, search }: SearchedSet): SetPerformance {
  return { id, gpuType, mode, jobs: [...jobs], points: [], search };
}

/**
 * How far the search for a set's shares is: not asked for; asked for, and it waits until it was often enough or for a GPU that
 * idles; impossible, for what its functions lack; a job that waits or runs; failed; or done, with nothing more to gain.
 */
type SearchStage = 'none' | 'asked' | 'impossible' | 'waiting' | 'running' | 'failed' | 'done';

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
