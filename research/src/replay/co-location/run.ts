// One replay of functions beside training jobs, and what it shows.
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy, type PolicyChoice } from '@gpuwhisk/gpu/policies/make-policy';
import { bySmore } from '@gpuwhisk/bench/replay/smore-degradations';
import { capacityModel } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { alike } from '@gpuwhisk/bench/replay/alike';
import { normal, replay, type GpuTruth, type ReplayRun } from '@gpuwhisk/gpu/simulate/replay';
import type { SimulatedPlace } from '@gpuwhisk/gpu/simulate/simulated-gpu';
import type { SimulatedWorkload } from '@gpuwhisk/gpu/simulate/simulated-workload';
import { meanOf } from '@gpuwhisk/bench/statistics';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';
import type { Learned } from './learned.js';
import { drawRequests, type RequestPlan } from './requests.js';
import '../../baselines/register.js';

/** What all experiments share. */
export interface World {
  functions: readonly CatalogueEntry[];
  trainings: readonly CatalogueEntry[];
  /** Used in turn by the seeds: bootstrap draws of the truth, and what was learned of each. */
  draws: readonly { truth: GpuTruth; learned: Learned }[];
  /** Requests of each minute of the trace. */
  minutes: readonly number[];
}

/** A GPU or a slice with its training job, and its weight in means over places. */
export interface ExperimentPlace {
  place: SimulatedPlace;
  training: string;
  weight: number;
}

/** An experiment: places, and requests. */
export interface Experiment {
  places: readonly ExperimentPlace[];
  requests: RequestPlan;
}

/** GPUs under MPS with the training jobs in turn. */
export function sharedGpus(gpus: number, trainings: readonly string[]): ExperimentPlace[] {
  const { places } = alike({
    gpus,
    type: 'rtx3090',
    mode: 'mps',
    memoryMiB: rtx3090MiB,
    movesShares: true,
    perNode: 8,
  });
  return places.map((place, at) => ({ place, training: trainings[at % trainings.length] ?? '', weight: 1 }));
}

/** Greatest tolerated D of a training job (θ_train of the thesis). */
export const bound = 0.1;
/** Standard deviation of the logarithm of a rate that is reported over one second. */
const reportNoise = 0.01;
const rtx3090MiB = 24_576;

/** The metrics of SMORE's comparison (paper section VIII-D), and others. Fractions. */
export interface CoLocationMetrics {
  /** Deadline satisfactory ratio: results within the SLO over all requests; refused and stopped ones count as missed. */
  dsr: number;
  /** GPU utilisation improvement: part of the SMs in use above that of the training jobs alone. */
  gui: number;
  /** Degradation of the training jobs, D = alone / together − 1 of their rate: mean. */
  sfd: number;
  /** Degradation of the functions that were served, D = time / time alone − 1: mean. */
  sld: number;
  /** Requests that were started and ended, over all. */
  admitted: number;
  /** Part of the SMs in use, and by the training jobs alone. */
  used: number;
  usedAlone: number;
  /** Of the functions that were served, those with D below 0.1 and below 1. */
  below10: number;
  below100: number;
  /** Part of the time of the training jobs, by seconds, in which D was beyond the bound. */
  beyond: number;
  /** The longest stretch of such seconds. */
  longestBeyondS: number;
  /** Requests whose run was stopped, over all. */
  stopped: number;
}

/** One replay. */
export interface CoLocationResult {
  metrics: CoLocationMetrics;
  run: ReplayRun;
  /** D of each function that was served. */
  degradations: readonly number[];
  /** Requests by second of arrival: all, and those that were served. */
  bySecond: { submitted: number[]; admitted: number[] };
  /** Requests by model: all, and those that were served. */
  byModel: ReadonlyMap<string, { submitted: number; admitted: number }>;
}

/** A policy, and what it predicts by: absent, all that was learned; `pairs`: with all weights at 1. */
export interface Contender {
  policy: PolicyChoice;
  learned?: 'pairs';
}

/** Replays an experiment with one seed under a policy. Random numbers depend on the seed alone. */
export function runCoLocation(
  { functions, trainings, draws, minutes }: World,
  { places, requests }: Experiment,
  { policy, learned: of }: Contender,
  seed: number,
): CoLocationResult {
  const draw = draws[seed % draws.length];
  if (draw === undefined) throw new RangeError('there is no truth');
  const { truth, learned } = draw;
  const { known } = learned;
  const predictor = of === 'pairs' ? learned.ofPairs : learned.predictor;
  const random = seededRandom(seed);
  const jobs = drawRequests(requests, minutes, functions, known, truth.noise, random);
  const workloads = places.map(({ place, training: name }, at): SimulatedWorkload => {
    const entry = trainings.find((one) => one.name === name);
    const record = known.get(name)?.record;
    if (entry === undefined || record === undefined) throw new RangeError(`nothing is known of '${name}'`);
    return {
      id: `training${at}`,
      gpu: place.id,
      workload: name,
      name,
      memoryMiB: entry.memoryMiB,
      tolerated: 1 - 1 / (1 + bound),
      // The median of fifteen reports.
      baseline: Math.exp((reportNoise / Math.sqrt(15)) * normal(random)),
      noise: reportNoise,
      features: record,
    };
  });
  const made = makePolicy(policy, {
    predictorOf: () => capacityModel,
    // A ledger that is made of a view names slices with a profile of no name.
    degradationsOf: ({ gpuType, mode }) => bySmore(predictor, { gpuType: gpuType.replace(/:$/, ''), mode }),
    random: seededRandom(seed + 1),
    admission: 'refuse',
  });
  const cluster = { places: places.map(({ place }) => place), workloads };
  const run = replay(jobs, cluster, truth, made, seededRandom(seed + 2), () => performance.now());
  return resultOf(run, jobs, truth, places, requests.seconds);
}

function resultOf(
  run: ReplayRun,
  jobs: readonly ReplayRun['finished'][number]['job'][],
  truth: GpuTruth,
  places: readonly ExperimentPlace[],
  seconds: number,
): CoLocationResult {
  const { finished, stopped, workloads } = run;
  const onTime = finished.filter(
    ({ job: { task }, finishedAt }) => finishedAt <= task.arrivedAt + (task.sloMs ?? Infinity),
  );
  const ofFunctions = finished.map(({ job, startedAt, finishedAt }) => {
    return (finishedAt - startedAt - job.startMs) / job.soloMs - 1;
  });
  // What is done after the last second of arrivals says nothing of the load.
  const all = workloads.map(({ workload, seconds: each }, at) => {
    const { place, weight } = places[at] as ExperimentPlace;
    const kind = { gpuType: place.type, mode: place.mode };
    const alone = truth.used([{ workload: workload.workload, share: workload.share ?? 1 }], kind);
    return { each: each.slice(0, seconds), alone, weight };
  });
  const each = all.flatMap((one) => one.each);
  const weights = all.reduce((sum, { weight }) => sum + weight, 0);
  const weighted = (of: (one: (typeof all)[number]) => number): number =>
    all.reduce((sum, one) => sum + one.weight * of(one), 0) / weights;
  const used = weighted((one) => meanOf(one.each.map((second) => second.used)));
  const usedAlone = weighted(({ alone }) => alone);
  const part = (count: number, of: number): number => (of === 0 ? 0 : count / of);
  const ended = new Set(finished.map(({ job }) => job.task.id));
  const bySecond = { submitted: Array<number>(seconds).fill(0), admitted: Array<number>(seconds).fill(0) };
  const byModel = new Map<string, { submitted: number; admitted: number }>();
  for (const { task, workload } of jobs) {
    const second = Math.min(seconds - 1, Math.floor(task.arrivedAt / 1000));
    const model = workload.replace(/-\d+$/, '');
    const counts = byModel.get(model) ?? { submitted: 0, admitted: 0 };
    byModel.set(model, counts);
    counts.submitted += 1;
    bySecond.submitted[second] = (bySecond.submitted[second] ?? 0) + 1;
    if (!ended.has(task.id)) continue;
    counts.admitted += 1;
    bySecond.admitted[second] = (bySecond.admitted[second] ?? 0) + 1;
  }
  return {
    metrics: {
      dsr: part(onTime.length, jobs.length),
      gui: used - usedAlone,
      sfd: meanOf(all.map((one) => 1 / meanOf(one.each.map(({ degradation }) => 1 / (1 + degradation))) - 1)),
      sld: ofFunctions.length === 0 ? 0 : meanOf(ofFunctions),
      admitted: part(finished.length, jobs.length),
      used,
      usedAlone,
      below10: part(ofFunctions.filter((one) => one < 0.1).length, ofFunctions.length),
      below100: part(ofFunctions.filter((one) => one < 1).length, ofFunctions.length),
      beyond: part(each.filter(({ degradation }) => degradation > bound).length, each.length),
      longestBeyondS: Math.max(...all.map((one) => longest(one.each.map(({ degradation }) => degradation > bound)))),
      stopped: part(stopped.length, jobs.length),
    },
    run,
    degradations: ofFunctions,
    bySecond,
    byModel,
  };
}

/** The longest row of `true`. */
function longest(values: readonly boolean[]): number {
  let most = 0;
  let now = 0;
  for (const value of values) {
    now = value ? now + 1 : 0;
    most = Math.max(most, now);
  }
  return most;
}
