// One replay of a scenario under a policy.
import { seededRandom } from '@gpuwhisk/common/system/random';
import { gpuMemoryBound } from '@gpuwhisk/common/gpu';
import { makePolicy, type PolicyChoice } from '@gpuwhisk/gpu/policies/make-policy';
import type { Policy } from '@gpuwhisk/gpu/policies/policy';
import { replay, type ReplayJob, type SimulatedCluster } from '@gpuwhisk/gpu/simulate/replay';
import type { SimulatedPlace } from '@gpuwhisk/gpu/simulate/simulated-gpu';
import type { SimulatedWorkload } from '@gpuwhisk/gpu/simulate/simulated-workload';
import { coldStartMs, injectionMs } from '../replay/starts.js';
import type { Bracket, Form } from '../world/truth.js';
import { drawFunctions, observed, type Durations, type RunFunction } from './functions.js';
import { learnEarlier, ownKnowledge, taggedFeatures, trueKnowledge, type Earlier } from './knowledge.js';
import { metricsOf, type MetricName } from './metrics.js';
import { drawRequests } from './requests.js';
import type { Contender, Scenario } from './scenario.js';
import type { AnswerCounts } from './world-truth.js';
import type { Candidate, MeasuredWorld, WorldTruth } from './worlds.js';
import '../baselines/register.js';

/** Seeds of verdicts begin here; below are those by which anything may be tuned. */
export const firstVerdictSeed = 1_000_000;

/** Pre-warmed processes of every policy alike: a pool makes one as a cold start does. */
const pool = { size: 2, injectMs: injectionMs, coldMs: coldStartMs, refillMs: coldStartMs } as const;
/** Memory of each, MiB: a context of the simulated V100. */
const pooledMiB = 310;
/** A start in an instance that is there. */
const warmMs = 1;
/** A run ends this many times its requests' work on all GPUs after the last one came: some policies let work wait for ever. */
const drain = 1;
/** GPUs of a node. */
const perNode = 4;
/** Standard deviation of the logarithm of a rate that is reported over one second. */
const reportNoise = 0.01;

/** What a seed draws in a truth: the same for all policies and loads. */
export interface Drawn {
  scenario: Scenario;
  world: MeasuredWorld;
  seed: number;
  truth: WorldTruth;
  functions: readonly RunFunction[];
  trainings: readonly Candidate[];
  earlier: Earlier;
  /** Requests a ms that `mps-equal` ends when it always has work. */
  capacityPerMs: number;
}

/** Draws of what is unknown, which seeds use in turn: the seed's own. */
export function drawRun(
  scenario: Scenario,
  world: MeasuredWorld,
  durations: Durations,
  { form, bracket, seed }: { form: Form; bracket: Bracket; seed: number },
): Drawn {
  const truth = world.truthOf(form, seed, bracket);
  const random = seededRandom(seed);
  const { functions, trainings, others } = drawFunctions(scenario, world, durations, truth, random);
  const earlier = learnEarlier(world, others, truth, random);
  const drawn = { scenario, world, seed, truth, functions, trainings, earlier, capacityPerMs: NaN };
  return { ...drawn, capacityPerMs: capacityOf(drawn) };
}

/** The policy whose capacity loads refer to. */
const reference: Contender = { name: 'mps-equal', policy: 'mps-equal', profiles: [] };
/** Requests of the run that the capacity is taken from, and the part of its ends that counts: neither start nor drain. */
const steady = { requests: 150, from: 0.1, to: 0.6 } as const;

/** Requests a ms that the reference ends in a closed run of the scenario's functions. Throws RangeError where no time passes. */
function capacityOf(drawn: Drawn): number {
  const requests = Math.min(drawn.scenario.requests, steady.requests);
  const scenario: Scenario = { ...drawn.scenario, requests, arrivals: 'closed', profiles: [], trainings: 0 };
  const { finishedAt } = runOnce({ ...drawn, scenario, trainings: [] }, reference, 1);
  const rising = [...finishedAt].sort((a, b) => a - b);
  const at = (part: number): number => Math.floor((rising.length - 1) * part);
  const elapsed = (rising[at(steady.to)] ?? NaN) - (rising[at(steady.from)] ?? NaN);
  if (!(elapsed > 0)) throw new RangeError(`no time passes in a closed run of scenario ${drawn.scenario.name}`);
  return (at(steady.to) - at(steady.from)) / elapsed;
}

/** Metrics of a run, and what its answers rest on. */
export interface RunResult {
  metrics: Record<MetricName, number>;
  counts: AnswerCounts;
  finishedAt: readonly number[];
}

/** Runs a policy at `load` times the capacity. All random numbers depend on the seed alone, not on the policy. */
export function runOnce(drawn: Drawn, contender: Contender, load: number): RunResult {
  const { scenario, world, seed, truth } = drawn;
  const knowsTruth = contender.knowsTruth === true;
  const functions = knowsTruth ? drawn.functions.map(tagged) : drawn.functions;
  const isOpen = scenario.arrivals !== 'closed';
  const ratePerMs = !isOpen ? 1 : load * drawn.capacityPerMs;
  const requests = drawRequests(scenario, functions, ratePerMs, pool.injectMs, seededRandom(seed + 1));
  const jobs = knowsTruth ? requests.map(withLength) : requests;
  const knowledge = knowsTruth ? trueKnowledge(functions, truth) : ownKnowledge(drawn.earlier);
  const made = makePolicy(contender.policy as PolicyChoice, {
    predictorOf: () => knowledge.predictor,
    degradationsOf: (gpu) => knowledge.degradationsOf(gpu),
    quotas: knowledge.quotas,
    random: seededRandom(seed + 2),
    admission: 'best-effort',
  });
  const before = { ...truth.counts };
  const lastArrival = Math.max(...jobs.map(({ task }) => task.arrivedAt));
  const workMs = jobs.reduce((sum, { soloMs }) => sum + soloMs, 0);
  const endMs = lastArrival + (drain * workMs) / scenario.gpus;
  const cluster = clusterOf(scenario, world, contender.profiles ?? scenario.profiles);
  const workloads = workloadsOf(cluster.places, drawn);
  const run = replay(
    jobs,
    { ...cluster, endMs, ...(workloads.length > 0 && { workloads }) },
    truth,
    observing(made, (ran) => knowledge.observe(ran)),
    seededRandom(seed + 3),
  );
  const { counts } = truth;
  return {
    metrics: metricsOf(run, jobs, { isOpen, endMs, bound: scenario.bound }),
    counts: {
      asked: counts.asked - before.asked,
      extrapolated: counts.extrapolated - before.extrapolated,
      beyond: counts.beyond - before.beyond,
      partial: counts.partial - before.partial,
    },
    finishedAt: run.finished.map(({ finishedAt }) => finishedAt),
  };
}

const tagged = (one: RunFunction, at: number): RunFunction => {
  const { features } = one.task;
  return features === undefined ? one : { ...one, task: { ...one.task, features: taggedFeatures(features, at) } };
};

/** A job whose true length its policy is told. */
const withLength = (job: ReplayJob): ReplayJob => ({ ...job, task: { ...job.task, soloMs: job.soloMs } });

/** The policy, whose runs others learn from too. */
function observing(policy: Policy, learn: NonNullable<Policy['observe']>): Policy {
  return {
    ...policy,
    observe(run) {
      learn(run);
      policy.observe?.(run);
    },
  };
}

function clusterOf({ gpus, wholeGpus }: Scenario, world: MeasuredWorld, profiles: readonly string[]): SimulatedCluster {
  const { gpuType, seenAs, memoryMiB, hasQuotas } = world;
  const places = Array.from({ length: gpus }, (_, at): SimulatedPlace => {
    const givenAway = Math.floor(gpuMemoryBound * memoryMiB - pool.size * pooledMiB);
    return {
      ...{ id: `gpu${at}`, node: `node${Math.floor(at / perNode)}`, type: gpuType, mode: seenAs, idle: [] },
      ...{ memoryMiB: givenAway, movesShares: hasQuotas, profiles: at < wholeGpus ? [] : profiles },
    };
  });
  return { places, warmMs, pool };
}

/** A training job on each of the first GPUs. */
function workloadsOf(
  places: readonly SimulatedPlace[],
  { trainings, truth, world, seed, scenario: { bound } }: Drawn,
): SimulatedWorkload[] {
  const random = seededRandom(seed + 4);
  return trainings.flatMap((one, at): SimulatedWorkload[] => {
    const gpu = places[at];
    if (gpu === undefined) return [];
    const { record: features } = observed(world, one, truth, random);
    return [
      {
        ...{ id: `training${at}`, gpu: gpu.id, workload: one.workload, name: one.workload, memoryMiB: one.memoryMiB },
        ...{ tolerated: bound / (1 + bound), baseline: 1, noise: reportNoise, features },
      },
    ];
  });
}
