import { seededRandom } from '@gpuwhisk/common/system/random';
import { defaultBestEffortMs } from '@gpuwhisk/gpu/order/earliest-deadline';
import { subQueueDefaults } from '@gpuwhisk/gpu/order/sub-queue-plan';
import { makePolicy, type PolicyNeeds } from '@gpuwhisk/gpu/policies/make-policy';
import type { Settings } from '@gpuwhisk/gpu/policies/stages';
import type { Policy } from '@gpuwhisk/gpu/policies/policy';
import type { SlowdownPredictor, CoLocated } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { Exploration } from '@gpuwhisk/gpu/share/gaussian-process';
import type { Quotas } from '@gpuwhisk/gpu/share/quotas';
import type { QuotaTable } from '@gpuwhisk/gpu/share/quota-table';
import { alike, replay, type AlikeGpus, type ReplayRun } from '@gpuwhisk/gpu/simulate/replay';
import type { GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import { drawJobs, type JobMix } from './jobs.js';
import type { Arrivals } from './jobs.js';
import { metricsOf, type ReplayMetrics } from './metrics.js';
import {
  offlineQuotas,
  type QuotaBudget,
  profileAlone,
  profiledPredictor,
  type Profile,
  type ProfilingBudget,
} from './profiling.js';
import { LearningTable } from './recurring.js';
import type { CatalogueEntry } from './workloads/catalogue.js';

/** A world in which policies are compared. */
export interface Setting {
  name: string;
  catalogue: readonly CatalogueEntry[];
  strict: readonly CatalogueEntry[];
  bestEffort: readonly CatalogueEntry[];
  /** The truth by seed: bootstrap draws of its parameters, used in turn. */
  truths: readonly GpuTruth[];
  cluster: Omit<AlikeGpus, 'gpus'>;
  budget: ProfilingBudget;
  quotaBudget: QuotaBudget;
  /** Overrides the memory of each task. */
  memoryMiB?: number;
  /** The same setting with other workloads. */
  withCatalogue(strict: readonly CatalogueEntry[], bestEffort: readonly CatalogueEntry[]): Setting;
}

/** A scenario in a setting. */
export interface Scenario {
  gpus: number;
  jobs: number;
  /** Absent if all jobs arrive at the start. */
  open?: { arrivals: Arrivals; ratePerMs: number };
  length: number;
  startMs: number;
  sloFactor: JobMix['sloFactor'];
  /** As in JobMix. */
  soloMs?: NonNullable<JobMix['soloMs']>;
  /** The table of measured sets learns during the replay; default: it has what was searched before. */
  learns?: boolean;
  /** Wait after which a job is not overtaken, ms; default: 30 s, stretched as the jobs are. */
  bestEffortMs?: number;
}

/** Results of profiling under one truth, shared by all policies. */
export interface Known {
  profiles: Map<string, Profile>;
  /** A predictor with a cache, which changes no answer. */
  predictor: SlowdownPredictor;
  /** The predictor without the cache, with which the time of decisions is measured. */
  forgetful: SlowdownPredictor;
  quotas: QuotaTable;
  /** Chooses shares in place of the table; absent: the table does. */
  oracle?: Quotas;
  /** Weight of each workload; absent: all are as likely. */
  popularity?: ReadonlyMap<string, number>;
}

/** The bound on waiting of FaaShare's queue, ms. */
function bestEffortMsOf({ bestEffortMs, length }: Scenario): number {
  return bestEffortMs ?? defaultBestEffortMs * length;
}

/** GPUs that overdue jobs may always take. */
export function lanesOf(gpus: number): number {
  return Math.max(1, gpus * subQueueDefaults.overduePart);
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

/** The same data with shares that were searched with another exploration. */
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
    const quotas = offlineQuotas(catalogue, truth, one.predictor, cluster.type, quotaBudget, random, { exploration });
    return { ...one, quotas };
  });
}

/** Makes a policy for a scenario. */
export type PolicyMaker = (needs: PolicyNeeds, scenario: Scenario) => Policy;

/** FaaShare. Its bound on waiting is stretched as the jobs are. */
export const ours: PolicyMaker = (needs, scenario) => oursWith({}, needs, scenario);

/** FaaShare that takes the quota stage's shares for the least gain. */
export const oursAtAnyGain: PolicyMaker = (needs, scenario) => oursWith({ minShareGain: 0 }, needs, scenario);

/** FaaShare that takes the nearest row's and the guardrail's shares on every miss. */
export const oursTakingEveryMiss: PolicyMaker = (needs, scenario) => oursWith({ takeEveryMiss: 1 }, needs, scenario);

function oursWith(settings: Settings, needs: PolicyNeeds, scenario: Scenario): Policy {
  return makePolicy({ base: 'faashare', settings: { bestEffortMs: bestEffortMsOf(scenario), ...settings } }, needs);
}

/** FaaShare without the quota stage. */
export const oursWithoutQuotas: PolicyMaker = ({ predictorOf, admission, random }, scenario) =>
  ours({ predictorOf, admission, random }, scenario);

/** A policy of the registry by its name. */
export function named(name: string): PolicyMaker {
  return name === 'faashare' ? ours : (needs) => makePolicy(name, needs);
}

/** Runs one scenario with one seed under one policy. All random numbers depend on the seed alone, not on the policy. */
export function runSeed(
  setting: Setting,
  known: readonly Known[],
  scenario: Scenario,
  makeOne: PolicyMaker,
  seed: number,
): { metrics: ReplayMetrics; run: ReplayRun } {
  const draw = seed % setting.truths.length;
  const truth = setting.truths[draw] as GpuTruth;
  const one = known[draw] as Known;
  const { profiles, predictor, quotas, popularity, oracle } = one;
  const random = seededRandom(seed);
  const { open, jobs: count, sloFactor, length, startMs, soloMs } = scenario;
  const times = open ? open.arrivals(count, random).map((at) => at / open.ratePerMs) : Array<number>(count).fill(0);
  const mix: JobMix = {
    strict: setting.strict,
    bestEffort: setting.bestEffort,
    sloFactor,
    length,
    startMs,
    ...(soloMs && { soloMs }),
    ...(popularity && { popularity }),
    ...(setting.memoryMiB !== undefined && { memoryMiB: setting.memoryMiB }),
  };
  const jobs = drawJobs(mix, times, profiles, random);
  const { catalogue } = setting;
  const learning = scenario.learns
    ? new LearningTable({ known: one, truth, catalogue, random: seededRandom(seed + 3) })
    : undefined;
  const made = makeOne(
    {
      predictorOf: () => predictor,
      quotas: oracle ?? learning ?? quotas,
      random: seededRandom(seed + 1),
      admission: 'best-effort',
    },
    scenario,
  );
  const policy = learning === undefined ? made : observed(made, learning);
  const cluster = alike({ ...setting.cluster, gpus: scenario.gpus });
  const run = replay(jobs, cluster, truth, policy, seededRandom(seed + 2), () => performance.now());
  const withSlo = jobs.filter(({ task }) => task.sloMs !== undefined).length;
  return { metrics: metricsOf(run, withSlo, bestEffortMsOf(scenario), lanesOf(scenario.gpus)), run };
}

/** The policy, with a table that learns from the same runs. */
function observed(policy: Policy, learning: LearningTable): Policy {
  return {
    ...policy,
    observe(run) {
      learning.ran(run);
      policy.observe?.(run);
    },
  };
}

const mostRemembered = 200_000;

/** A predictor that caches answers; replays under one truth repeat the same questions. */
function remembering(predictor: SlowdownPredictor): SlowdownPredictor {
  const known = new Map<string, number>();
  const text = ({ features: { smUtil, dramUtil, l2Util }, share }: CoLocated): string =>
    `${smUtil} ${dramUtil} ${l2Util} ${share}`;
  return {
    slowdown(one, others) {
      const key = `${text(one)};${others.map(text).join()}`;
      let slowdown = known.get(key);
      if (slowdown === undefined) {
        if (known.size >= mostRemembered) known.clear();
        known.set(key, (slowdown = predictor.slowdown(one, others)));
      }
      return slowdown;
    },
  };
}
