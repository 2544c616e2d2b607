import { seededRandom, type Random } from '@gpuwhisk/common/system/random';
import { defaultBestEffortMs } from '@gpuwhisk/gpu/stages/order/earliest-deadline';
import { makePolicy, type PolicyChanges, type PolicyNeeds } from '@gpuwhisk/gpu/policies/make-policy';
import type { Policy } from '@gpuwhisk/gpu/policies/policy';
import type { SlowdownPredictor } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { Exploration } from '@gpuwhisk/gpu/share/gaussian-process';
import type { Quotas } from '@gpuwhisk/gpu/share/quotas';
import type { QuotaTable } from '@gpuwhisk/gpu/share/quota-table';
import { alike, type AlikeGpus } from '@gpuwhisk/bench/replay/alike';
import { normal, replay, type ReplayJob, type ReplayRun } from '@gpuwhisk/gpu/simulate/replay';
import type { GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import { drawJobs, type JobMix } from '@gpuwhisk/bench/replay/jobs';
import type { Arrivals, Profile } from '@gpuwhisk/bench/replay/jobs';
import { lanesOf, metricsOf, type ReplayMetrics } from '@gpuwhisk/bench/replay/metrics';
import { oracleOf, type Oracle } from './oracle.js';
import { offlineQuotas, type QuotaBudget, profileAlone, profiledPredictor, type ProfilingBudget } from './profiling.js';
import { LearningTable } from './recurring.js';
import { remembering } from './remembering.js';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';
import '../baselines/register.js';

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
  /** Shares of a set that is searched sum to at most this, in percent; absent: to any sum. */
  maxTotal?: number;
  /** Overrides the memory of each task. */
  memoryMiB?: number;
  /** The least GPU time that 1 ms of an entry's solo time takes, in whole GPUs: at most 1. A bound for any schedule. */
  leastWork(entry: CatalogueEntry): number;
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
  /** Processes stay after their runs, and a start in one of the job's function takes no time; absent: they do not. */
  keepsInstances?: boolean;
  /** Shares that ours gives away of one GPU, at most; absent: the default of its plan. */
  maxLoad?: number;
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
  shares?: Quotas;
  /** Weight of each workload; absent: all are as likely. */
  popularity?: ReadonlyMap<string, number>;
  /** What is true, for policies that are to show what can be gained at all. */
  oracle: Oracle;
}

/** The bound on waiting of FaaShare's queue, ms. */
function bestEffortMsOf({ bestEffortMs, length }: Scenario): number {
  return bestEffortMs ?? defaultBestEffortMs * length;
}

/** Profiles, trains and searches shares under each of the setting's truths. */
export function learn(setting: Setting, seed: number): Known[] {
  return setting.truths.map((truth, draw) => {
    const random = seededRandom(seed * 7919 + draw);
    const { catalogue, budget } = setting;
    const profiles = profileAlone(catalogue, truth, random);
    // The runs that a predictor learns from are profiled at another time than those that it predicts.
    const earlier = profileAlone(catalogue, truth, random);
    const forgetful = profiledPredictor(catalogue, truth, earlier, budget, random);
    const predictor = remembering(forgetful);
    return {
      profiles,
      predictor,
      forgetful,
      quotas: searched(setting, truth, earlier, predictor, random),
      oracle: oracleOf(catalogue, truth, setting.maxTotal),
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
  return known.map((one, draw) => {
    const random = seededRandom(seed * 7919 + draw);
    const truth = setting.truths[draw] as GpuTruth;
    return { ...one, quotas: searched(setting, truth, one.profiles, one.predictor, random, exploration) };
  });
}

function searched(
  { catalogue, cluster, quotaBudget, maxTotal }: Setting,
  truth: GpuTruth,
  profiles: Known['profiles'],
  predictor: SlowdownPredictor,
  random: Random,
  exploration?: Exploration,
): QuotaTable {
  const budget = { ...quotaBudget, ...(maxTotal !== undefined && { maxTotal }) };
  const options = exploration === undefined ? {} : { exploration };
  return offlineQuotas(catalogue, truth, profiles, predictor, cluster.type, budget, random, options);
}

/** Makes a policy for a scenario. */
export interface PolicyMaker {
  (needs: PolicyNeeds, scenario: Scenario): Policy;
  /** It is given the truth in place of profiles, predictions, shares and lengths. */
  isOracle?: boolean;
}

/** FaaShare with other settings or stages. Its bound on waiting is stretched as the jobs are. */
export function oursWith({ settings, ...changes }: Omit<PolicyChanges, 'base'>): PolicyMaker {
  return (needs, scenario) => {
    const { maxLoad } = scenario;
    const ofScenario = { bestEffortMs: bestEffortMsOf(scenario), ...(maxLoad !== undefined && { maxLoad }) };
    return makePolicy({ base: 'faashare', ...changes, settings: { ...ofScenario, ...settings } }, needs);
  };
}

/** FaaShare. */
export const ours: PolicyMaker = oursWith({});

/** FaaShare that takes the quota stage's shares for the least gain. */
export const oursAtAnyGain: PolicyMaker = oursWith({ settings: { minShareGain: 0 } });

/** FaaShare that takes the nearest row's and the guardrail's shares on every miss. */
export const oursTakingEveryMiss: PolicyMaker = oursWith({ settings: { takeEveryMiss: 1 } });

/** FaaShare without the quota stage. */
export const oursWithoutQuotas: PolicyMaker = ({ predictorOf, admission, random }, scenario) =>
  ours({ predictorOf, admission, random }, scenario);

/** A policy with true slowdowns, the best shares and the true length of each job. */
export function withTruth(make: PolicyMaker): PolicyMaker {
  const knowing: PolicyMaker = (needs, scenario) => make(needs, scenario);
  knowing.isOracle = true;
  return knowing;
}

/** A policy of the registry by its name. */
export function named(name: string): PolicyMaker {
  return name === 'faashare' ? ours : (needs) => makePolicy(name, needs);
}

/** The jobs of a scenario with one seed. */
interface DrawnJobs {
  jobs: ReplayJob[];
  /** The random numbers of the replay, which its noise is drawn from. */
  seed: number;
}

/** Draws the jobs of a scenario. They depend on the seed alone. */
export function jobsOf(
  setting: Setting,
  { profiles, popularity }: Pick<Known, 'profiles' | 'popularity'>,
  scenario: Scenario,
  seed: number,
): DrawnJobs {
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
  return { jobs: drawJobs(mix, times, profiles, random), seed: seed + 2 };
}

/**
 * Solo times of the jobs with the noise that the replay with random numbers of `seed` gives them, ms, by id. The replay
 * draws its noise first, in order of arrival.
 */
export function trueLengths({ jobs, seed }: DrawnJobs, noise: number): Map<string, number> {
  const random = seededRandom(seed);
  const coming = [...jobs].sort((a, b) => a.task.arrivedAt - b.task.arrivedAt);
  return new Map(coming.map(({ task, soloMs }) => [task.id, soloMs * Math.exp(noise * normal(random))]));
}

/** The truth and the learned data of a seed: the setting's draws in turn. */
export function drawOf(setting: Setting, known: readonly Known[], seed: number): { truth: GpuTruth; known: Known } {
  const draw = seed % setting.truths.length;
  return { truth: setting.truths[draw] as GpuTruth, known: known[draw] as Known };
}

/** Runs one scenario with one seed under one policy. All random numbers depend on the seed alone, not on the policy. */
export function runSeed(
  setting: Setting,
  known: readonly Known[],
  scenario: Scenario,
  makeOne: PolicyMaker,
  seed: number,
): { metrics: ReplayMetrics; run: ReplayRun } {
  const { truth, known: learned } = drawOf(setting, known, seed);
  const { profiles, predictor, quotas } = makeOne.isOracle === true ? learned.oracle : learned;
  const drawn = jobsOf(setting, { ...learned, profiles }, scenario, seed);
  const lengths = makeOne.isOracle === true ? trueLengths(drawn, truth.noise) : undefined;
  const jobs = drawn.jobs.map((job) => {
    const soloMs = lengths?.get(job.task.id);
    return soloMs === undefined ? job : { ...job, task: { ...job.task, soloMs } };
  });
  const learning =
    scenario.learns === true
      ? new LearningTable({ known: learned, truth, catalogue: setting.catalogue, random: seededRandom(seed + 3) })
      : undefined;
  const made = makeOne(
    {
      predictorOf: () => predictor,
      quotas: learned.shares ?? learning ?? quotas,
      random: seededRandom(seed + 1),
      admission: 'best-effort',
    },
    scenario,
  );
  const policy = learning === undefined ? made : observed(made, learning);
  const kept = scenario.keepsInstances === true ? { kept: { warmMs: 0, initial: [] } } : {};
  const cluster = alike({ ...setting.cluster, gpus: scenario.gpus, ...kept });
  const run = replay(jobs, cluster, truth, policy, seededRandom(drawn.seed), () => performance.now());
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
