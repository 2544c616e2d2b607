// A closed loop of callers of plain functions, and the work that the platform does for them.
import { setTimeout as sleep } from 'node:timers/promises';
import type { LivePlatform } from '../live/platform.js';
import { hostMemoryMiB, modelCode } from '../live/functions.js';
import { percentile } from '../statistics.js';
import type { DrawnFunction } from './draw.js';

/** Load on a platform. Times in ms. */
export interface Load {
  functions: readonly DrawnFunction[];
  /** Functions with an SLO of so many times their time alone; absent: none. */
  strict?: { functions: readonly DrawnFunction[]; sloFactor: number; gapMs: number };
  callers: number;
  warmUpMs: number;
  measuredMs: number;
}

/** Results of a load. */
export interface LoadResult {
  /** Time alone of all calls that ended in the measured time, per time: GPUs' work in the unit of one. */
  work: number;
  /** From the first call until two were seen to run on one GPU, minutes; Infinity: never. */
  minutesToShare: number;
  /** Part of strict calls that ended after their SLO; NaN without any. */
  late: number;
  /** Longest 99th percentile of a function's calls over its time alone. */
  worstP99: number;
  /** Part of the busy time that trials have lost in the last ten minutes. */
  lostToTrials: number;
  /** Runs measured of the sets that were split, at most. */
  splitRuns: number;
}

const timeoutMs = 120_000;
/** Interval of looks at the devices until two run side by side, ms. */
const lookMs = 250;

interface ShownDevice {
  functions: { running: number; sets?: { state: string; runs: number }[] }[];
}

async function deploy({ api }: LivePlatform, name: string, one: DrawnFunction, sloMs?: number): Promise<void> {
  const { entry, units } = one;
  const gpu = { memoryMiB: entry.memoryMiB, ...(sloMs !== undefined && { sloMs }) };
  const parameters = { model: entry.workload, training: entry.isTraining, units, batch: entry.batch };
  await api.json('PUT', `/api/v1/namespaces/_/actions/${name}?overwrite=true`, {
    exec: { kind: 'python:default', code: modelCode },
    limits: { memory: hostMemoryMiB, timeout: timeoutMs },
    parameters: Object.entries(parameters).map(([key, value]) => ({ key, value })),
    annotations: [{ key: 'gpu', value: gpu }],
  });
}

/** Deploys the functions with no more than `memoryMiB` (strict ones with their SLO), and puts the load on the platform. Rejects if a call fails. */
export async function runLoad(platform: LivePlatform, load: Load): Promise<LoadResult> {
  const { api, player, operator } = platform;
  const { functions, strict, callers, warmUpMs, measuredMs } = load;
  const strictOnes = strict?.functions ?? [];
  const sloMsOf = ({ soloMs }: DrawnFunction): number => Math.ceil(soloMs * (strict?.sloFactor ?? 1));
  for (const [at, one] of functions.entries()) await deploy(platform, `plain${at}`, one);
  for (const [at, one] of strictOnes.entries()) await deploy(platform, `strict${at}`, one, sloMsOf(one));
  const beganMs = performance.now();
  const [fromMs, untilMs] = [beganMs + warmUpMs, beganMs + warmUpMs + measuredMs];
  let workMs = 0;
  const tookMs = functions.map((): number[] => []);
  const strictMs = strictOnes.map((): number[] => []);
  const loop = async (name: string, soloMs: number, times: number[], gapMs = 0): Promise<void> => {
    for (let sentMs = performance.now(); sentMs < untilMs; sentMs = performance.now()) {
      const { status, text } = await player.call(name, {});
      const endedMs = performance.now();
      if (status !== 200) throw new Error(`${name}: ${status} ${text.slice(0, 300)}`);
      if (endedMs >= fromMs && endedMs < untilMs) {
        workMs += soloMs;
        times.push(endedMs - sentMs);
      }
      if (gapMs > 0) await sleep(gapMs);
    }
  };
  const devices = async (): Promise<ShownDevice[]> =>
    (await operator.json('GET', '/api/v1/gpu/devices')) as ShownDevice[];
  let minutesToShare = Infinity;
  const watch = async (): Promise<void> => {
    while (performance.now() < untilMs && minutesToShare === Infinity) {
      const busy = (await devices()).map((one) => one.functions.filter(({ running }) => running > 0).length);
      if (Math.max(...busy) >= 2) minutesToShare = (performance.now() - beganMs) / 60_000;
      await sleep(lookMs);
    }
  };
  await Promise.all([
    ...functions.flatMap(({ soloMs }, at) =>
      Array.from({ length: callers }, () => loop(`plain${at}`, soloMs, tookMs[at] ?? [])),
    ),
    ...strictOnes.map(({ soloMs }, at) => loop(`strict${at}`, soloMs, strictMs[at] ?? [], strict?.gapMs)),
    watch(),
  ]);
  const splits = (await devices()).flatMap((one) =>
    one.functions.flatMap(({ sets = [] }) => sets.filter(({ state }) => state === 'split').map(({ runs }) => runs)),
  );
  const strictCalls = strictOnes.flatMap((one, at) => (strictMs[at] ?? []).map((ms) => ms > sloMsOf(one)));
  return {
    work: workMs / measuredMs,
    minutesToShare,
    late: strictCalls.filter(Boolean).length / strictCalls.length,
    worstP99: Math.max(...functions.map(({ soloMs }, at) => percentile(tookMs[at] ?? [], 99) / soloMs)),
    lostToTrials: await api.metric('gpuwhisk_gpu_trial_lost_part'),
    splitRuns: Math.max(0, ...splits),
  };
}
