import type { BenchContext } from '../bench.js';
import { readStandInModel } from '../stand-in-model.js';
import { liveCatalogue, standInTruth } from './catalogue.js';
import { meanOf, playedFigures, type Compared } from './comparison.js';
import { deploy, profile } from './functions.js';
import { idleInstances, startLivePlatform } from './live-platform.js';
import { play } from './player.js';
import { predict } from './prediction.js';
import { lengthOf, traceOf, type TraceSettings } from './trace.js';

/** What a live run has shown. */
export interface LiveRun {
  traces: Compared[];
  /** Means of what profiling's runs took beyond their time alone, ms: the starts that the simulator reckons with. */
  coldMs: number;
  warmMs: number;
}

/** A twentieth of a device is never given away. */
const usable = 0.95;

/**
 * Starts the platform on simulated GPUs of `type`, profiles the functions of the traces of `seeds`, and plays one trace
 * after the other, each of which the simulator has predicted before from what the platform has at that moment. Rejects
 * where a job fails.
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
