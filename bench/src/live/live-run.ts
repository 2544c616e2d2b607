import { join } from 'node:path';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { defaultBestEffortMs } from '@gpuwhisk/gpu/order/earliest-deadline';
import { makePolicy } from '@gpuwhisk/gpu/policies/make-policy';
import { capacityModel } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { alike, replay, type ReplayJob } from '@gpuwhisk/gpu/simulate/replay';
import type { GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import type { IdleInstance } from '@gpuwhisk/gpu/view/view';
import { connectApi, type Api } from '../api.js';
import type { BenchContext, Measurement } from '../bench.js';
import { metricsOf, type ReplayMetrics } from '../replay/metrics.js';
import { startPlatform } from '../servers.js';
import { readStandInModel } from '../stand-in-model.js';
import { median, percentile } from '../statistics.js';
import { liveCatalogue, standInTruth } from './catalogue.js';
import { deploy, profile, play, newPlayer, type Player } from './functions.js';
import type { PlayedJob } from './functions.js';
import { lengthOf, traceOf, type TraceSettings } from './trace.js';

/** Results of a live run. */
interface LiveRun {
  traces: Compared[];
  /** Mean times of profiling's runs beyond their solo time, ms: the start times that the simulator uses. */
  coldMs: number;
  warmMs: number;
}

/** A twentieth of a device is reserved. */
const usable = 0.95;

/**
 * Starts the platform on simulated GPUs of `type`, profiles the functions of the traces of `seeds`, and plays the
 * traces one after the other. Before each trace the simulator predicts it from the platform's state at that moment.
 * Rejects if a job fails.
 */
export async function liveRun(
  context: Pick<BenchContext, 'cleanup' | 'temporaryDir' | 'say'>,
  type: string,
  policy: string,
  settings: TraceSettings,
  seeds: readonly number[],
): Promise<LiveRun> {
  const { say } = context;
  const model = readStandInModel();
  const catalogue = liveCatalogue(model, type);
  const truth = standInTruth(model, type, catalogue);
  const device = model.devices.find((one) => one.type === type);
  if (device === undefined) throw new RangeError(`The stand-in has no ${type}.`);
  const memoryMiB = Math.floor(device.memoryGiB * 1024 * usable);
  const length = lengthOf(settings, catalogue);
  const names = new Set(seeds.flatMap((seed) => traceOf(settings, catalogue, 0, seed)).map((job) => job.workload));
  const entries = catalogue.filter(({ name }) => names.has(name));

  const { api, player } = await startLivePlatform(context, `sim:${type}x${settings.gpus}`, policy);
  say(`live: ${entries.length} functions are profiled`);
  await deploy(api, entries, length);
  const { cold, warm } = await profile(player, entries, length, settings.gpus);
  const [coldMs, warmMs] = [meanOf(cold), meanOf(warm)];
  say(`live: a cold start takes ${coldMs.toFixed(0)} ms, a warm one ${warmMs.toFixed(0)} ms`);

  const traces: Compared[] = [];
  for (const seed of seeds) {
    const jobs = traceOf(settings, catalogue, coldMs, seed);
    const beginning = { type, memoryMiB, idle: await idleInstances(api), warmMs };
    const replay = predict(jobs, truth, policy, beginning);
    const replayFcfs = predict(jobs, truth, 'fcfs', beginning);
    const calls = jobs.map(({ workload, task }) => ({ action: workload, atMs: task.arrivedAt }));
    const played = await play(player, calls);
    const live = playedFigures(jobs, played);
    const startsOf = (isWarm: boolean): number[] =>
      played.filter(({ start }) => (start === 'warm') === isWarm).map(({ startMs }) => startMs);
    const [colds, warms] = [startsOf(false), startsOf(true)];
    const asStarted = traceOf(settings, catalogue, colds.length > 0 ? meanOf(colds) : coldMs, seed);
    const replayAsStarted = predict(asStarted, truth, policy, {
      ...beginning,
      warmMs: warms.length > 0 ? meanOf(warms) : warmMs,
    });
    traces.push({ live, replay, replayFcfs, replayAsStarted });
    say(`live: seed ${seed}: ${live.jctMs.toFixed(0)} ms, predicted ${replay.jctMs.toFixed(0)} ms`);
  }
  return { traces, coldMs, warmMs };
}

/** A platform with simulated GPUs and a client of it. */
interface LivePlatform {
  api: Api;
  player: Player;
}

const settings = {
  // Callers wait long enough for jobs to get a GPU and to run.
  GPUWHISK_BLOCKING_WAIT_MS: '600000',
  // Processes need less of the host's memory than their limit.
  GPUWHISK_POOL_MEMORY_MIB: '16384',
};

/** Starts the platform on `gpus` (`sim:rtx3090x4`) with `policy`; cleanup stops it. */
async function startLivePlatform(
  { cleanup, temporaryDir }: Pick<BenchContext, 'cleanup' | 'temporaryDir'>,
  gpus: string,
  policy: string,
): Promise<LivePlatform> {
  const { url } = await startPlatform(cleanup, {
    dataDir: join(temporaryDir, 'data'),
    stemCells: false,
    environment: { ...settings, GPUWHISK_GPUS: gpus, GPUWHISK_GPU__POLICY: policy },
  });
  const [api, player] = [connectApi(url), newPlayer(url)];
  cleanup.add('connections', () => {
    api.close();
    player.close();
    return Promise.resolve();
  });
  return { api, player };
}

interface ShownDevice {
  uuid: string;
  functions: { action?: string; namespace?: string; share: number; memoryMiB: number; running: number }[];
}

/** Idle processes by device, in the order of the devices' ids, in the form that policies see. */
async function idleInstances(api: Api): Promise<IdleInstance[][]> {
  const devices = (await api.json('GET', '/api/v1/gpu/devices')) as ShownDevice[];
  return devices.map(({ functions }) =>
    functions.flatMap(({ action, namespace, share, memoryMiB, running }) =>
      running > 0 || action === undefined || namespace === undefined
        ? []
        : [{ function: action, namespace, share, memoryMiB }],
    ),
  );
}

/** The platform's state before a trace, as input of a prediction. */
interface Beginning {
  type: string;
  /** Memory of each GPU that functions may use, MiB. */
  memoryMiB: number;
  /** Idle processes by GPU. */
  idle: readonly (readonly IdleInstance[])[];
  /** Start of a task in such a process, ms. */
  warmMs: number;
}

/** The simulator's prediction of a trace: the platform's policy on GPUs that behave as `truth` says. */
export function predict(
  jobs: readonly ReplayJob[],
  truth: GpuTruth,
  policyName: string,
  { type, memoryMiB, idle, warmMs }: Beginning,
): ReplayMetrics {
  const policy = makePolicy(policyName, {
    predictorOf: () => capacityModel,
    admission: 'best-effort',
    random: seededRandom(1),
  });
  const gpus = idle.length;
  const cluster = { gpus, type, mode: 'mps', memoryMiB, perNode: gpus, kept: { warmMs, initial: idle } } as const;
  const run = replay(jobs, alike(cluster), truth, policy, seededRandom(1));
  return metricsOf(run, jobs.filter(({ task }) => task.sloMs !== undefined).length, defaultBestEffortMs);
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

/** Mean of some values. */
function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The figures of jobs that were played. */
function playedFigures(jobs: readonly ReplayJob[], played: readonly PlayedJob[]): Compared['live'] {
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
    warmStarts: played.filter(({ start }) => start === 'warm').length / played.length,
  };
}

/** A trace on the platform and in the simulator. */
interface Compared {
  live: TraceFigures & { warmStarts: number };
  replay: ReplayMetrics;
  /** The same trace first come, first served; shows whether the comparison can tell policies apart. */
  replayFcfs: ReplayMetrics;
  /** The same trace with the mean start times of the live run; a remaining difference has other causes. */
  replayAsStarted: ReplayMetrics;
}

/** Medians over the traces; ratios divide the platform's value by the simulator's, trace by trace. */
export function comparison(traces: readonly Compared[]): Measurement[] {
  const over = (name: string, value: (trace: Compared) => number): Measurement => {
    const values = traces.map(value);
    return { name, value: median(values), spread: [Math.min(...values), Math.max(...values)] };
  };
  const names = ['jctMs', 'runMs', 'p95Ms', 'makespanMs', 'violations'] as const;
  const capital = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
  return [
    over('liveJctRatio', ({ live, replay }) => live.jctMs / replay.jctMs),
    over('liveJctRatioAsStarted', ({ live, replayAsStarted }) => live.jctMs / replayAsStarted.jctMs),
    over('liveMakespanRatio', ({ live, replay }) => live.makespanMs / replay.makespanMs),
    over('liveP95Ratio', ({ live, replay }) => live.p95Ms / replay.p95Ms),
    over('replayFcfsJctRatio', ({ replay, replayFcfs }) => replayFcfs.jctMs / replay.jctMs),
    over('liveWarmStarts', ({ live }) => live.warmStarts),
    ...names.flatMap((name) => [
      over(`live${capital(name)}`, ({ live }) => live[name]),
      over(`replay${capital(name)}`, ({ replay }) => replay[name]),
    ]),
  ];
}
