// Traces on a platform with simulated GPUs, and the simulator's prediction of each.
import { seededRandom } from '@gpuwhisk/common/system/random';
import { defaultBestEffortMs } from '@gpuwhisk/gpu/stages/order/earliest-deadline';
import { makePolicy } from '@gpuwhisk/gpu/policies/make-policy';
import type { PolicyChoice } from '@gpuwhisk/gpu/policies/make-policy';
import { capacityModel } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { replay, type ReplayJob } from '@gpuwhisk/gpu/simulate/replay';
import type { GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import type { IdleInstance } from '@gpuwhisk/gpu/simulate/node-rows';
import { alike } from '../replay/alike.js';
import { lanesOf, metricsOf, type ReplayMetrics } from '../replay/metrics.js';
import { readStandInModel } from '../stand-in-model.js';
import { meanOf, percentile } from '../statistics.js';
import { liveCatalogue, standInTruth } from './catalogue.js';
import { deploy, profile } from './functions.js';
import { eagerSearches, expectLearnedUse, learnedOf, learnedUse, policyState, train } from './learned.js';
import type { Learned, LearnedUse } from './learned.js';
import { expectInjected, play, startTimes, type ByStart, type PlayedJob } from './player.js';
import { idleInstances, startLivePlatform, type LiveContext } from './platform.js';
import { lengthOf, traceOf, type TraceSettings } from './trace.js';

/** Parameters of a live run. */
export interface LiveSettings {
  /** Also the name of the folder of its data. */
  name: string;
  /** The simulated GPUs. */
  type: string;
  policy: string;
  trace: TraceSettings;
  seeds: readonly number[];
  /** Names of the functions; absent: the whole catalogue. */
  functions?: readonly string[];
  /** Trains the platform before the traces. Rejects if the traces then do not go by what was learned. */
  training?: { mostRounds: number; searchesWithinMs: number };
}

/** Results of a live run. */
export interface LiveRun {
  traces: Compared[];
  /** Mean times of profiling's runs beyond their solo time, ms: the start times that the simulator uses. */
  coldMs: number;
  warmMs: number;
}

/** First come, first served, each with the share that it fills. */
const firstCome = { base: 'exclusive', share: 'filling', place: 'best-fit' } as const;
/** A twentieth of a device is reserved. */
const usable = 0.95;
/** Seeds of the rounds of training, apart from those of the traces. */
const firstTrainingSeed = 1_000_000;

/**
 * Starts the platform on simulated GPUs, profiles the functions of the traces, and plays the traces one after the other.
 * Before each trace the simulator predicts it from the platform's state at that moment, learned data included. Rejects if
 * a job fails, or if no function was injected.
 */
export async function liveRun(context: LiveContext, settings: LiveSettings): Promise<LiveRun> {
  const { say } = context;
  const { name: part, type, policy, trace, seeds, functions, training } = settings;
  const model = readStandInModel();
  const whole = liveCatalogue(model, type);
  const catalogue = functions === undefined ? whole : whole.filter(({ name }) => functions.includes(name));
  const truth = standInTruth(model, type, catalogue);
  const device = model.devices.find((one) => one.type === type);
  if (device === undefined) throw new RangeError(`The stand-in has no ${type}.`);
  const memoryMiB = Math.floor(device.memoryGiB * 1024 * usable);
  const length = lengthOf(trace, catalogue);
  const names = new Set(seeds.flatMap((seed) => traceOf(trace, catalogue, 0, seed)).map((job) => job.workload));
  const entries = training ? catalogue : catalogue.filter(({ name }) => names.has(name));

  const platform = await startLivePlatform(context, part, `sim:${type}x${trace.gpus}`, {
    GPUWHISK_GPU__POLICY: policy,
    ...(training && eagerSearches),
  });
  const { api, player } = platform;
  say(`live: ${entries.length} functions are profiled`);
  await deploy(api, entries, length, training !== undefined);
  const profiled = await profile(player, entries, length, trace.gpus);
  const [coldMs, warmMs] = meanStarts(profiled);
  say(`live: a start takes ${coldMs.toFixed(0)} ms, a warm one ${warmMs.toFixed(0)} ms`);
  if (training) {
    const round = (at: number): Call[] => callsOf(traceOf(trace, catalogue, coldMs, firstTrainingSeed + at));
    await train(platform, { ...training, round, say });
  }

  const traces: Compared[] = [];
  // A trained platform has most processes that its traces need, so that profiling counts, too.
  const starts = training ? profiled.map(({ start }) => start) : [];
  const under = { type, memoryMiB, truth, policy };
  for (const seed of seeds) {
    const learned = await learnedOf(platform);
    const state = await policyState(api);
    const idle = await idleInstances(api);
    const jobsAt = (startMs: number): ReplayJob[] => traceOf(trace, catalogue, startMs, seed);
    const jobs = jobsAt(coldMs);
    const beginning = { ...under, idle, warmMs };
    const replayed = {
      replay: predict(jobs, beginning, learned),
      replayFcfs: predict(jobs, { ...beginning, policy: firstCome }, learned),
      replayUntrained: predict(jobs, beginning),
    };
    const played = await play(player, callsOf(jobs));
    const [coldStartMs, warmStartMs] = meanStarts(played, [coldMs, warmMs]);
    const compared = {
      ...replayed,
      replayAsStarted: predict(jobsAt(coldStartMs), { ...beginning, warmMs: warmStartMs }, learned),
      live: playedFigures(jobs, played),
      use: learnedUse(state, await policyState(api)),
      starts: startTimes(played),
    };
    traces.push(compared);
    starts.push(...played.map(({ start }) => start));
    const { live, replay: predicted, use } = compared;
    say(`live: seed ${seed}: ${live.jctMs.toFixed(0)} ms, predicted ${predicted.jctMs.toFixed(0)} ms`);
    if (training) expectLearnedUse(use, `${part}, seed ${seed}`);
  }
  expectInjected(starts, part);
  await platform.stop();
  return { traces, coldMs, warmMs };
}

interface Call {
  action: string;
  atMs: number;
}

function callsOf(jobs: readonly ReplayJob[]): Call[] {
  return jobs.map(({ workload, task }) => ({ action: workload, atMs: task.arrivedAt }));
}

/** Mean times of starts that load code and of warm ones, ms; `otherwise` where there are none. */
function meanStarts(
  runs: Parameters<typeof startTimes>[0],
  [coldMs, warmMs]: readonly [number, number] = [NaN, NaN],
): [number, number] {
  const { warm, ...loading } = startTimes(runs);
  const loads = Object.values(loading).flat();
  return [loads.length > 0 ? meanOf(loads) : coldMs, warm.length > 0 ? meanOf(warm) : warmMs];
}

/** The platform and its state before a trace, as input of a prediction. */
interface Beginning {
  type: string;
  /** The behaviour of the GPUs. */
  truth: GpuTruth;
  policy: PolicyChoice;
  /** Memory of each GPU that functions may use, MiB. */
  memoryMiB: number;
  /** Idle processes by GPU. */
  idle: readonly (readonly IdleInstance[])[];
  /** Start of a task in such a process, ms. */
  warmMs: number;
}

/**
 * The simulator's prediction of a trace with the data that the platform has learned; absent: with the capacity model and
 * no measured sets.
 */
export function predict(
  jobs: readonly ReplayJob[],
  { type, truth, policy: choice, memoryMiB, idle, warmMs }: Beginning,
  { features = new Map(), ...learned }: Partial<Learned> = {},
): ReplayMetrics {
  const policy = makePolicy(choice, {
    predictorOf: () => capacityModel,
    ...learned,
    admission: 'best-effort',
    random: seededRandom(1),
  });
  const known = jobs.map((job): ReplayJob => {
    const measured = features.get(job.task.function);
    return measured === undefined ? job : { ...job, task: { ...job.task, features: measured } };
  });
  const gpus = idle.length;
  const cluster = { gpus, type, mode: 'mps', memoryMiB, perNode: gpus, kept: { warmMs, initial: idle } } as const;
  const run = replay(known, alike(cluster), truth, policy, seededRandom(1));
  return metricsOf(run, jobs.filter(({ task }) => task.sloMs !== undefined).length, defaultBestEffortMs, lanesOf(gpus));
}

/** Results of a trace on the platform or in the simulator. Times in ms. */
interface TraceFigures {
  jctMs: number;
  /** From start to result. */
  runMs: number;
  p95Ms: number;
  makespanMs: number;
  /** Fraction of the jobs with an SLO whose result came late. */
  violations: number;
}

/** The figures of jobs that were played. */
function playedFigures(jobs: readonly ReplayJob[], played: readonly PlayedJob[]): TraceFigures {
  const jct = played.map(({ jctMs }) => jctMs);
  const strict = jobs.filter(({ task }) => task.sloMs !== undefined).length;
  const late = played.filter(({ jctMs }, i) => jctMs > (jobs[i]?.task.sloMs ?? Infinity)).length;
  const first = Math.min(...jobs.map(({ task }) => task.arrivedAt));
  return {
    jctMs: meanOf(jct),
    runMs: meanOf(played.map(({ jctMs, queueMs }) => jctMs - queueMs)),
    p95Ms: percentile(jct, 95),
    makespanMs: Math.max(...played.map(({ finishedMs }) => finishedMs)) - first,
    violations: strict === 0 ? 0 : late / strict,
  };
}

/** A trace on the platform and in the simulator. */
export interface Compared {
  live: TraceFigures;
  /** The platform's starts, ms. */
  starts: ByStart<number[]>;
  use: LearnedUse;
  replay: ReplayMetrics;
  /** The same trace first come, first served; shows whether the comparison can tell policies apart. */
  replayFcfs: ReplayMetrics;
  /** The same trace with the mean start times of the live run; a remaining difference has other causes. */
  replayAsStarted: ReplayMetrics;
  /** The same trace without learned data; shows whether learned data changes decisions. */
  replayUntrained: ReplayMetrics;
}
