// Performance data in the form of the API, with the states of searches for shares.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import type { FunctionProfile } from '@gpuwhisk/gpu/stages/profile/function-profiles';
import { median } from '@gpuwhisk/gpu/stages/profile/fill';
import type { PairDrift } from '@gpuwhisk/gpu/predict/degradation-predictor';
import type { MemberKind } from '@gpuwhisk/gpu/predict/pair-degradation';
import { rowKey } from '@gpuwhisk/gpu/share/quota-row';
import type { QuotaRow } from '@gpuwhisk/gpu/share/quota-row';
import type { PairModelView } from './pair-models.js';

/** The performance of a function on one kind of GPU, for operators and the function's owner. Times in ms. */
export interface FunctionPerformance extends Omit<FunctionProfile, 'batches'> {
  /** `measured`: from runs alone; otherwise estimated from runs beside others. */
  batches: BatchPerformance[];
}

/** The performance with one batch size. */
interface BatchPerformance {
  batch: number;
  soloMs?: number;
  measured: boolean;
  startMs?: number;
  runs: number;
  /** Median slowdown of the last warm runs beside others; `predicted` by the predictor at the end of each run. */
  slowdown?: { predicted: number; measured: number; runs: number };
}

/** The measurements of a set on one kind of GPU. */
export interface SetPerformance extends GpuKind {
  /** Id for the deletion of the set. */
  id: string;
  /** Absent for a set without measurements. */
  driverMajor?: number;
  /** `problem`: why a search must not run the function. */
  jobs: { function: string; version: string; problem?: string }[];
  /** Points, best first: shares in percent and slowdowns, by function. */
  points: { shares: number[]; slowdowns: number[]; measurements: number }[];
  search: SearchState;
}

/** A predictor in force. */
export interface PredictorSummary extends GpuKind {
  version: number;
  /** Number of training runs. */
  sampleCount: number;
  /** Epoch ms. */
  learnedAt?: number;
}

/** The API's view of a profile; times are medians, ms. */
export function functionView({ batches, ...profile }: FunctionProfile): FunctionPerformance {
  const { function: name, version, gpuType, mode, features, fillSource, shares } = profile;
  return {
    function: name,
    version,
    gpuType,
    mode,
    ...(features !== undefined && { features }),
    ...(fillSource !== undefined && { fillSource }),
    ...(shares !== undefined && { shares }),
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

/** The API's view of a measured set and of the search for its shares, if there is one. */
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

/** The API's view of a set without measurements. */
export function unmeasuredView({ key: id, gpuType, mode, jobs, search }: SearchedSet): SetPerformance {
  return { id, gpuType, mode, jobs: [...jobs], points: [], search };
}

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

/** Degradations of pairs, for operators. */
export interface DegradationsView {
  /** By kind of GPU and kinds of victim and neighbour. */
  models: PairModelView[];
  drifts: DriftView[];
  /** Absent: this controller measures no pairs. */
  measurements?: MeasurementState;
}

/** A pair whose degradation departs from the predicted one: D, means of the last 20 observations. */
export interface DriftView extends Pick<PairDrift, 'gpuType' | 'mode' | 'direction' | 'departed' | 'observed'> {
  victim: DriftSide;
  neighbour: DriftSide;
  predicted: number;
  measured: number;
}

/** A side of a pair: a workload by its name, or a function as `/namespace/action`. */
interface DriftSide {
  kind: MemberKind;
  name: string;
  /** Namespace that the function runs for. */
  namespace?: string;
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

/** The API's view of a pair that drifts. */
export function driftView(drift: PairDrift): DriftView {
  const { gpuType, mode, victimKind, neighbourKind, victim, neighbour } = drift;
  const { direction, departed, observed, meanPredicted: predicted, meanMeasured: measured } = drift;
  return {
    ...{ gpuType, mode, victim: sideView(victimKind, victim), neighbour: sideView(neighbourKind, neighbour) },
    ...{ direction, departed, observed, predicted, measured },
  };
}

/** A side by the name of its model: the key of a function's instances, or a workload's name and its figures. */
function sideView(kind: MemberKind, model: string): DriftSide {
  const at = model.indexOf(kind === 'function' ? ' /' : ' {');
  if (at < 0) return { kind, name: model };
  return kind === 'function'
    ? { kind, name: model.slice(at + 1), namespace: model.slice(0, at) }
    : { kind, name: model.slice(0, at) };
}
