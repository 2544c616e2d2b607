// Trials of a function in the form of the API, with the states of their jobs.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import type { ProfileGoal, ShareProfile, Trial } from '@gpuwhisk/gpu/stages/profile/trials';
import { mostTrialsOf, stepOf } from './function-trials.js';
import type { KindTrials, ProfiledFunction, WantedFunction } from './function-trials.js';
import type { SearchState } from './performance-view.js';

/** The jobs that run trials. */
export interface ProfilingJobs {
  /** Whether samples are run here on any GPU whose SMs are shared by MPS. */
  isPossible(): boolean;
  /** Whether trials of a function run here. */
  isRunning(name: string): boolean;
  stateOf(wanted: WantedFunction, kind: GpuKind): SearchState | undefined;
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
