// Performance data in the form of the API, with the states of searches for shares and of trials.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import type { PairDrift } from '@gpuwhisk/gpu/predict/degradation-predictor';
import type { MemberKind } from '@gpuwhisk/gpu/predict/pair-degradation';
import { rowKey } from '@gpuwhisk/gpu/share/quota-row';
import type { QuotaRow } from '@gpuwhisk/gpu/share/quota-row';
import { median } from '@gpuwhisk/gpu/stages/profile/fill';
import type { FunctionProfile } from '@gpuwhisk/gpu/stages/profile/function-profiles';
import type { InputBucket } from '@gpuwhisk/gpu/view/input-size';
import type { ProfileGoal, ShareProfile, Trial } from '@gpuwhisk/gpu/stages/profile/trials';
import { mostTrialsOf, stepOf } from '../gpu/learning/function-trials.js';
import type { RunsAlone } from '../gpu/learning/function-faults.js';
import type { KindTrials, ProfiledFunction } from '../gpu/learning/function-trials.js';
import type { MeasurementState, ProfilingJobs, SearchedSet, SearchState } from '../gpu/learning/measurement-states.js';
import type { PairModelView } from '../gpu/learning/pair-models.js';
import type { PerformanceData } from '../gpu/learning/performance-data.js';

/** Reads performance data in the form of the API. */
export class PerformanceViews {
  constructor(private readonly performanceData: PerformanceData) {}

  /** Models of pairs, pairs that drift, and the state of their measurement. */
  degradations(): DegradationsView {
    const { pairs, degradations } = this.performanceData;
    const measurements = this.performanceData.pairMeasurements();
    return {
      models: pairs.views(),
      drifts: degradations.drifts().map(driftView),
      ...(measurements && { measurements }),
    };
  }

  /** The performance of the functions that `wants` selects by `/namespace/action`; of all if absent. */
  functions(wants?: (name: string) => boolean): FunctionPerformance[] {
    const all = this.performanceData.profiles.all();
    const { faults } = this.performanceData;
    const known = (wants === undefined ? all : all.filter((one) => wants(one.function))).map((one) => {
      const alone = faults.alone(one.function, one.version);
      return { ...functionView(one), ...(alone && { alone }) };
    });
    const unmeasured = faults.all().filter((one) => !known.some(({ function: name }) => name === one.function));
    const others = unmeasured.filter((one) => wants === undefined || wants(one.function));
    return [...known, ...others.map((one) => ({ ...one, gpuType: '-', mode: 'mps' as const, batches: [] }))];
  }

  /** The measured sets and those to be measured that have a function selected by `wants`; all if absent. */
  quotas(wants?: (name: string) => boolean): SetPerformance[] {
    const isWanted = ({ jobs }: { jobs: readonly { function: string }[] }): boolean =>
      wants === undefined || jobs.some((job) => wants(job.function));
    const searches = new Map(this.performanceData.searches().map((one) => [one.key, one]));
    const stored: SetPerformance[] = [];
    for (const row of this.performanceData.table.rows()) {
      const key = rowKey(row);
      if (isWanted(row)) stored.push(quotaView(row, searches.get(key)));
      searches.delete(key);
    }
    return [...stored, ...[...searches.values()].filter(isWanted).map(unmeasuredView)];
  }

  /** The learned predictors in force. */
  models(): PredictorSummary[] {
    return this.performanceData.predictors.list().map(({ gpuType, mode, version, sampleCount, learnedAt }) => ({
      gpuType,
      mode,
      version,
      sampleCount,
      ...(learnedAt !== undefined && { learnedAt }),
    }));
  }

  /** The trials of a function, `/namespace/action`. */
  trialsOf(name: string): TrialsView {
    const { trials, profilingJobs } = this.performanceData;
    return trialsView(trials.of(name), profilingJobs);
  }
}

/** The performance of a function on one kind of GPU, for operators and the function's owner. Times in ms. */
export interface FunctionPerformance extends Omit<FunctionProfile, 'batches'> {
  /** Why its version runs alone, and until when, epoch ms; absent: it need not. */
  alone?: RunsAlone;
  /** `measured`: from runs alone; otherwise estimated from runs beside others. */
  batches: BatchPerformance[];
}

/** The performance with one batch size. */
interface BatchPerformance {
  batch: number;
  /** The largest size of the inputs; absent: not known. */
  inputs?: InputBucket;
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
function functionView({ batches, ...profile }: FunctionProfile): FunctionPerformance {
  const { function: name, version, gpuType, mode, features, fillSource, shares } = profile;
  return {
    function: name,
    version,
    gpuType,
    mode,
    ...(features !== undefined && { features }),
    ...(fillSource !== undefined && { fillSource }),
    ...(shares !== undefined && { shares }),
    batches: batches.map(({ batch, inputs, soloMs, isAlone, startMs, beside = [] }) => {
      const [solo, start] = [median(soloMs), median(startMs)];
      const predicted = median(beside.map((run) => run.predicted));
      const measured = median(beside.map((run) => run.measured));
      return {
        batch,
        ...(inputs !== undefined && { inputs }),
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
function quotaView(row: QuotaRow, searched?: SearchedSet): SetPerformance {
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
function unmeasuredView({ key: id, gpuType, mode, jobs, search }: SearchedSet): SetPerformance {
  return { id, gpuType, mode, jobs: [...jobs], points: [], search };
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
interface DriftView extends Pick<PairDrift, 'gpuType' | 'mode' | 'direction' | 'departed' | 'observed'> {
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

/** The API's view of a pair that drifts. */
function driftView(drift: PairDrift): DriftView {
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

/** A trial; `isOverlong`: longer than samples may run. Times in ms. */
type TrialView = Trial & { isOverlong?: true };

/** Trials of a function on a kind of GPU. */
interface KindTrialsView extends GpuKind {
  trials: TrialView[];
  /** The most trials that the search takes. */
  mostTrials: number;
  /** The state of the job; absent: there is none. */
  job?: SearchState;
  profile?: ShareProfile;
  /** Why the search has no result. */
  failed?: string;
}

/** The trials of a function. */
export interface TrialsView {
  /**
   * `none`: not wanted; `waiting`: for an idle GPU; `running`; `cancelled`; `impossible`: see `problem`; `done`: on all
   * kinds of GPU that it was run on.
   */
  state: 'none' | 'waiting' | 'running' | 'cancelled' | 'impossible' | 'done';
  version?: string;
  goal?: ProfileGoal;
  /** Why no trial is run. */
  problem?: string;
  kinds: KindTrialsView[];
}

const impossible =
  'no trial is run here: samples are switched off (gpu.search.enabled), the policy uses no measurements, ' +
  'no GPU shares its SMs by MPS, or another controller decides';

/** The view of a function's trials; `jobs` is undefined if no samples are run here. */
export function trialsView(one: ProfiledFunction | undefined, jobs: ProfilingJobs | undefined): TrialsView {
  if (one === undefined) return { state: 'none', kinds: [] };
  const { version, goal, isCancelled = false } = one;
  const kinds = one.kinds.map((kind) => kindView(one, kind, jobs));
  const isDone =
    kinds.length > 0 && kinds.every(({ profile, failed }) => profile !== undefined || failed !== undefined);
  const problem = one.problem ?? (jobs?.isPossible() === true ? undefined : impossible);
  let state: TrialsView['state'] = jobs?.isRunning(one.function) === true ? 'running' : 'waiting';
  if (isDone) state = 'done';
  else if (isCancelled) state = 'cancelled';
  else if (problem !== undefined) state = 'impossible';
  return { state, version, goal, ...(!isDone && problem !== undefined && { problem }), kinds };
}

function kindView(
  one: ProfiledFunction,
  { gpuType, mode, trials }: KindTrials,
  jobs: ProfilingJobs | undefined,
): KindTrialsView {
  const step = stepOf(one, trials);
  const job = jobs?.stateOf(one, { gpuType, mode });
  return {
    gpuType,
    mode,
    // JSON has no Infinity.
    trials: trials.map(({ ms, ...trial }) => {
      if (ms === Infinity) return { ...trial, isOverlong: true as const };
      return { ...trial, ...(ms !== undefined && { ms }) };
    }),
    mostTrials: mostTrialsOf(one),
    ...(job && { job }),
    ...('profile' in step && { profile: step.profile }),
    ...('failed' in step && { failed: step.failed }),
  };
}
