// Functions without a GPU: their starts by kind, and their throughput.
import { setTimeout as sleep } from 'node:timers/promises';
import { medianOf, type Measurement } from '../bench.js';
import type { Api } from '../api.js';
import { startOf, type Answered, type Player } from './player.js';
import { startLivePlatform, type LiveContext } from './platform.js';

/** A Python function with a known answer. */
export interface CpuFunction {
  /** In names of figures. */
  name: string;
  code: string;
  /** Smallest limit, MiB; cold starts have larger ones, one each. */
  memoryMiB: number;
  requirements: readonly string[];
  /** Modules that ready processes have loaded. */
  imports: readonly string[];
  input: object;
  /** Throws an Error unless `result` is the answer to `input`. */
  check(result: Record<string, unknown>): void;
}

/** Kinds of starts that are measured. */
const kinds = ['cold', 'injected', 'warm'] as const;
type Kind = (typeof kinds)[number];

/** Times of one request, ms. */
interface Timed {
  /** Until the first line of `main`: the start of a process, and imports of modules and code. */
  startMs: number;
  /** Until the answer. */
  answerMs: number;
}

/** All processes of all rounds: none is removed, and ready ones are made only while there is room. They use less than their limit. */
const poolMiB = '65536';

/** Notes when the function's first line runs, on the clock of `monotonicMs`. */
const stamp = `
import time as _time
_answer = main

def main(args):
    began_ms = _time.monotonic() * 1000
    return {**_answer(args), "beganMs": began_ms}
`;

/** The clock of Python's `time.monotonic()`. */
const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** Amounts of measurements. */
export interface CpuAmounts {
  /** Starts of each kind. */
  starts: number;
  /** Length of the load, s, and the callers that send one request after the other. */
  seconds: number;
  callers: number;
}

/**
 * Measures `functions` on a platform without GPUs where functions are injected. Rejects if an answer is wrong, or if a start
 * is of another kind than it should be.
 */
export async function cpuRun(
  context: LiveContext,
  functions: readonly CpuFunction[],
  amounts: CpuAmounts,
): Promise<Measurement[]> {
  const platform = await startLivePlatform(context, 'cpu', 'none', { GPUWHISK_POOL_MEMORY_MIB: poolMiB });
  const measurements: Measurement[] = [];
  for (const one of functions) {
    const times = await measureStarts(context, platform, one, amounts.starts);
    const perS = await throughput(platform.player, one, amounts);
    measurements.push(...kinds.flatMap((kind) => figuresOf(kind, one, times[kind])), {
      name: `cpuPerS.${one.name}`,
      value: perS,
    });
  }
  await platform.stop();
  return measurements;
}

function figuresOf(kind: Kind, { name }: CpuFunction, times: readonly Timed[]): Measurement[] {
  const prefix = `cpu${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
  const figure = (what: string, of: (one: Timed) => number): Measurement =>
    medianOf(`${prefix}${what}.${name}`, times.map(of));
  return [figure('StartMs', ({ startMs }) => startMs), figure('Ms', ({ answerMs }) => answerMs)];
}

const actionOf = ({ name }: CpuFunction, which: string): string => `${name}-${which}`;

async function deploy(api: Api, one: CpuFunction, which: string, memoryMiB: number): Promise<void> {
  const { code, requirements, imports } = one;
  await api.json('PUT', `/api/v1/namespaces/_/actions/${actionOf(one, which)}?overwrite=true`, {
    exec: { kind: 'python:default', code: code + stamp },
    limits: { memory: memoryMiB, timeout: 300_000 },
    annotations: [
      ...(requirements.length > 0 ? [{ key: 'requirements', value: requirements }] : []),
      { key: 'warm', value: { imports } },
    ],
  });
}

/**
 * Times of requests by kind of start. Each round has a memory limit that no process has yet: its first
 * action starts cold, a second one is injected into the process that the platform then has made ready.
 */
async function measureStarts(
  { say }: Pick<LiveContext, 'say'>,
  { api, operator, player }: { api: Api; operator: Api; player: Player },
  one: CpuFunction,
  rounds: number,
): Promise<Record<Kind, Timed[]>> {
  const times: Record<Kind, Timed[]> = { cold: [], injected: [], warm: [] };
  const timed = async (which: string, kind: Kind): Promise<void> => {
    const sentMs = monotonicMs();
    const record = await run(player, one, which);
    const answerMs = monotonicMs() - sentMs;
    times[kind].push({ startMs: Number(record.response.result['beganMs']) - sentMs, answerMs });
    const start = startOf(record);
    if (start !== kind) throw new Error(`${actionOf(one, which)}: the start was ${start} instead of ${kind}`);
  };
  // The next step starts when the process that this one has made the platform start is ready.
  const alone = async (memoryMiB: number, step: () => Promise<unknown>): Promise<void> => {
    const since = Date.now();
    await step();
    await readySince(operator, one, memoryMiB, since);
  };
  await deploy(api, one, 'install', one.memoryMiB);
  await alone(one.memoryMiB, () => run(player, one, 'install'));
  for (let at = 1; at <= rounds; at += 1) {
    const memoryMiB = one.memoryMiB + at;
    for (const which of [`cold${at}`, `injected${at}`]) await deploy(api, one, which, memoryMiB);
    await alone(memoryMiB, () => timed(`cold${at}`, 'cold'));
    await alone(memoryMiB, () => timed(`injected${at}`, 'injected'));
    await timed(`injected${at}`, 'warm');
    const last = kinds.map((kind) => {
      const { startMs, answerMs } = times[kind].at(-1) ?? { startMs: NaN, answerMs: NaN };
      return `${kind} first line after ${startMs.toFixed(1)} ms, answer after ${answerMs.toFixed(0)} ms`;
    });
    say(`  ${one.name}: ${last.join('; ')}`);
  }
  return times;
}

async function run(player: Player, one: CpuFunction, which: string): Promise<Answered> {
  const record = await player.invoke(actionOf(one, which), one.input);
  one.check(record.response.result);
  return record;
}

const [readyWithinMs, readyLookMs] = [60_000, 50];

/** A process without code, as the platform shows it. */
interface ShownPrewarmer {
  memoryMiB: number;
  imports: string[];
  /** Epoch ms. */
  since: number;
}

/**
 * Waits for a process of `memoryMiB` that has been ready since `since` (epoch ms) or later with the modules of the function.
 * Rejects with the processes that are ready if there is none within a minute.
 */
async function readySince(
  operator: Api,
  { name, imports }: CpuFunction,
  memoryMiB: number,
  since: number,
): Promise<void> {
  const untilMs = performance.now() + readyWithinMs;
  const wanted = [...imports].sort().join();
  const isWanted = (one: ShownPrewarmer): boolean =>
    one.since >= since && one.memoryMiB === memoryMiB && [...one.imports].sort().join() === wanted;
  let ready: ShownPrewarmer[] = [];
  while (performance.now() < untilMs) {
    ready = (await operator.json('GET', '/api/v1/admin/prewarmers')) as ShownPrewarmer[];
    if (ready.some(isWanted)) return;
    await sleep(readyLookMs);
  }
  const shown = ready.map((one) => `${one.memoryMiB} MiB since ${one.since} (${one.imports.join()})`).join('; ');
  throw new Error(
    `no process of ${memoryMiB} MiB was made ready for ${name} since ${since} within ${readyWithinMs} ms; ready: ${shown}`,
  );
}

/** Right answers per second. */
async function throughput(player: Player, one: CpuFunction, { seconds, callers }: CpuAmounts): Promise<number> {
  const startedMs = performance.now();
  const untilMs = startedMs + seconds * 1000;
  let answers = 0;
  const caller = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      await run(player, one, 'install');
      answers += 1;
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return (1000 * answers) / (performance.now() - startedMs);
}
