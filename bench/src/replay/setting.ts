import { seededRandom } from '@gpuwhisk/common/system/random';
import type { SlowdownPredictor } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { defaultBestEffortMs } from '@gpuwhisk/gpu/order/earliest-deadline';
import type { Policy } from '@gpuwhisk/gpu/policies/policy';
import type { Exploration } from '@gpuwhisk/gpu/share/expected-improvement';
import type { Quotas } from '@gpuwhisk/gpu/share/quotas';
import { makePolicy, type PolicyNeeds } from '@gpuwhisk/gpu/policies/make-policy';
import type { Arrivals } from './arrivals.js';
import { drawJobs, type JobMix } from './jobs.js';
import { offlineQuotas, type QuotaBudget } from './offline-quotas.js';
import { metricsOf, type ReplayMetrics } from './metrics.js';
import { profileAlone, profiledPredictor, type Profile, type ProfilingBudget } from './profiling.js';
import { remembering } from './remembering.js';
import { alike, replay, type AlikeGpus, type ReplayRun } from '@gpuwhisk/gpu/simulate/replay';
import type { GpuTruth } from '@gpuwhisk/gpu/simulate/truth';
import type { CatalogueEntry } from './workloads/catalogue.js';

/** One world to compare policies in. */
export interface Setting {
  name: string;
  catalogue: readonly CatalogueEntry[];
  strict: readonly CatalogueEntry[];
  bestEffort: readonly CatalogueEntry[];
  /** The truth for a seed: with as many bootstrap draws of its parameters as there are, in turn. */
  truths: readonly GpuTruth[];
  cluster: Omit<AlikeGpus, 'gpus'>;
  budget: ProfilingBudget;
  quotaBudget: QuotaBudget;
  /** Overrides what a task is said to hold. */
  memoryMiB?: number;
  /** The same with other workloads. */
  withCatalogue(strict: readonly CatalogueEntry[], bestEffort: readonly CatalogueEntry[]): Setting;
}

/** A scenario in a setting. */
export interface Scenario {
  gpus: number;
  jobs: number;
  /** Absent: all are there at the start. */
  open?: { arrivals: Arrivals; ratePerMs: number };
  length: number;
  startMs: number;
  sloFactor: number;
  /** Wait after which a job is not overtaken any more, ms; absent: 30 s, stretched as the jobs are. */
  bestEffortMs?: number;
}

/** What profiling has shown under one truth; all policies share it. */
export interface Known {
  profiles: Map<string, Profile>;
  /** That remembers what it was asked, which changes no answer. */
  predictor: SlowdownPredictor;
  /** The same, which does not: what decisions take is measured with it. */
  forgetful: SlowdownPredictor;
  quotas: Quotas;
}

/** The bound on waiting of FaaShare's queue, ms. */
function bestEffortMsOf({ bestEffortMs, length }: Scenario): number {
  return bestEffortMs ?? defaultBestEffortMs * length;
}

/** Profiles, trains and searches shares under each of the setting's truths. */
export function learn(setting: Setting, seed: number): Known[] {
  return setting.truths.map((truth, draw) => {
    const random = seededRandom(seed * 7919 + draw);
    const { catalogue, budget, quotaBudget, cluster } = setting;
    const profiles = profileAlone(catalogue, truth, random);
    const forgetful = profiledPredictor(catalogue, truth, budget, random);
    const predictor = remembering(forgetful);
    return {
      profiles,
      predictor,
      forgetful,
      quotas: offlineQuotas(catalogue, truth, predictor, cluster.type, quotaBudget, random),
    };
  });
}

/** The same with shares that were searched with another exploration. */
export function searchedWith(
  setting: Setting,
  known: readonly Known[],
  exploration: Exploration,
  seed: number,
): Known[] {
  const { catalogue, cluster, quotaBudget } = setting;
  return known.map((one, draw) => {
    const random = seededRandom(seed * 7919 + draw);
    const truth = setting.truths[draw] as GpuTruth;
    const quotas = offlineQuotas(catalogue, truth, one.predictor, cluster.type, quotaBudget, random, exploration);
    return { ...one, quotas };
  });
}

/** Makes a policy for a scenario. */
export type PolicyMaker = (needs: PolicyNeeds, scenario: Scenario) => Policy;

/** FaaShare; its bound on waiting is stretched as the jobs are. */
export const ours: PolicyMaker = (needs, scenario) =>
  makePolicy({ base: 'faashare', settings: { bestEffortMs: bestEffortMsOf(scenario) } }, needs);

/** FaaShare without the quota stage. */
export const oursWithoutQuotas: PolicyMaker = ({ predictorOf, admission, random }, scenario) =>
  ours({ predictorOf, admission, random }, scenario);

/** A policy of the registry by its name. */
export function named(name: string): PolicyMaker {
  return name === 'faashare' ? ours : (needs) => makePolicy(name, needs);
}

/** Runs one scenario with one seed under one policy. Everything but the policy depends on the seed alone. */
export function runSeed(
  setting: Setting,
  known: readonly Known[],
  scenario: Scenario,
  makeOne: PolicyMaker,
  seed: number,
): { metrics: ReplayMetrics; run: ReplayRun } {
  const draw = seed % setting.truths.length;
  const truth = setting.truths[draw] as GpuTruth;
  const { profiles, predictor, quotas } = known[draw] as Known;
  const random = seededRandom(seed);
  const { open, jobs: count, sloFactor, length, startMs } = scenario;
  const times = open ? open.arrivals(count, random).map((at) => at / open.ratePerMs) : Array<number>(count).fill(0);
  const mix: JobMix = {
    strict: setting.strict,
    bestEffort: setting.bestEffort,
    sloFactor,
    length,
    startMs,
    ...(setting.memoryMiB !== undefined && { memoryMiB: setting.memoryMiB }),
  };
  const jobs = drawJobs(mix, times, profiles, random);
  const policy = makeOne(
    { predictorOf: () => predictor, quotas, random: seededRandom(seed + 1), admission: 'best-effort' },
    scenario,
  );
  const cluster = alike({ ...setting.cluster, gpus: scenario.gpus });
  const run = replay(jobs, cluster, truth, policy, seededRandom(seed + 2), () => performance.now());
  const withSlo = jobs.filter(({ task }) => task.sloMs !== undefined).length;
  return { metrics: metricsOf(run, withSlo, bestEffortMsOf(scenario)), run };
}
