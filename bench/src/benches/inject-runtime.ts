import { join } from 'node:path';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { RuntimeProcess } from '@gpuwhisk/test/runtimes/runtime-harness';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import { repositoryDir } from '../machine.js';
import { memoryOf } from '../processes.js';
import { median, percentile } from '../statistics.js';

/** The init message of a function that returns its input. */
export interface EchoFunction {
  code: string;
  main: string;
  binary: boolean;
  /** SHA-256 of the code, which the runtime checks. */
  digest: string;
}

const leastSamples = 300;
/** Unmeasured runs, in which the invoker's code is compiled. */
const warmUps = 50;
const longRuns = 20_000;
/** Number of runs from which on times must not rise. */
const settledRuns = 5_000;
/** Runs of the long-lived process after its long part, and as many of a settled one, in turns. */
const comparedRuns = 3_000;
const coldStarts = 15;
const memoryMiB = 256;
const env = { __OW_NAMESPACE: 'bench' };

/** How to start the runtime of the first kind of `family` that `wanted` accepts; undefined if the machine lacks it. */
export async function launchOf(
  context: BenchContext,
  family: string,
  wanted: (kind: string) => boolean,
): Promise<RuntimeLaunch | undefined> {
  const catalog = await createRuntimeCatalog({
    runtimesDir: join(repositoryDir, 'runtimes'),
    dataDir: join(context.temporaryDir, `inject-${family}`),
    clock: systemClock,
  });
  const kind = catalog.manifest.runtimes[family]?.find((entry) => wanted(entry.kind))?.kind;
  return kind === undefined ? undefined : catalog.launch(kind, [], memoryMiB);
}

/**
 * Measures a runtime that can unload. `<name>Ms`: ready check with namespace and digest, init, run and verified unload,
 * as the invoker measures them over the socket. Verification in the runtime and the cold start of the same function are
 * figures of their own. `<name>Slowdown20k`: slowdown after 20,000 such runs against another process after 5,000, in
 * turns.
 */
export async function measureRuntime(
  context: BenchContext,
  name: string,
  launch: RuntimeLaunch,
  echo: EchoFunction,
): Promise<Measurement[]> {
  const coldMs = await measureColdStarts(context, launch, echo);
  const startedMs = performance.now();
  const runtime = await startPrewarmer(context, launch);
  const readyMs = performance.now() - startedMs;
  await repeat(runtime, echo, warmUps);
  const first = await repeat(runtime, echo, Math.max(context.options.samples, leastSamples));
  const beforeMiB = memoryOf(runtime.pid ?? 0).rssMiB;
  const long = await repeat(runtime, echo, longRuns);
  const afterMiB = memoryOf(runtime.pid ?? 0).rssMiB;
  const younger = await startPrewarmer(context, launch);
  await repeat(younger, echo, settledRuns);
  const olderMs: number[] = [];
  const youngerMs: number[] = [];
  for (let turn = 0; turn < comparedRuns; turn += 1) {
    olderMs.push(...(await repeat(runtime, echo, 1)).totalMs);
    youngerMs.push(...(await repeat(younger, echo, 1)).totalMs);
  }
  return [
    medianOf(`${name}Ms`, first.totalMs),
    { name: `${name}P99Ms`, value: percentile(first.totalMs, 99) },
    medianOf(`${name}VerifyMs`, first.verifyMs),
    medianOf(`${name}ToResultMs`, first.resultMs),
    medianOf(`${name}ColdMs`, coldMs),
    { name: `${name}ReadyMs`, value: readyMs },
    medianOf(`${name}20kMs`, long.totalMs),
    { name: `${name}20kP99Ms`, value: percentile(long.totalMs, 99) },
    { name: `${name}Slowdown20k`, value: median(olderMs) / median(youngerMs) - 1 },
    { name: `${name}LeakMiB`, value: afterMiB - beforeMiB },
  ];
}

async function startPrewarmer(context: BenchContext, launch: RuntimeLaunch): Promise<RuntimeProcess> {
  const runtime = new RuntimeProcess(launch, { GPUWHISK_PREWARM: 'true' });
  context.cleanup.add('a pre-warmer', () => runtime.close());
  await runtime.frame((frame) => frame.type === 1);
  return runtime;
}

interface Samples {
  /** Init, run and unload together. */
  totalMs: number[];
  /** Init and run: up to the function's result. */
  resultMs: number[];
  /** Verification time as the runtime reports it. */
  verifyMs: number[];
}

async function repeat(runtime: RuntimeProcess, echo: EchoFunction, times: number): Promise<Samples> {
  const samples: Samples = { totalMs: [], resultMs: [], verifyMs: [] };
  for (let turn = 0; turn < times; turn += 1) {
    const startedMs = performance.now();
    await callOnce(runtime, echo, turn);
    const resultMs = performance.now() - startedMs;
    const { isError, body } = await runtime.unload();
    samples.totalMs.push(performance.now() - startedMs);
    if (isError) throw new Error(`The function cannot be unloaded: ${JSON.stringify(body)}`);
    samples.resultMs.push(resultMs);
    samples.verifyMs.push((body as { verifyUs: number }).verifyUs / 1000);
    runtime.frames.length = 0;
  }
  return samples;
}

async function callOnce(runtime: RuntimeProcess, echo: EchoFunction, turn: number): Promise<void> {
  const loaded = await runtime.init({ ...echo, env });
  if (loaded.isError) throw new Error(`The function cannot be loaded: ${JSON.stringify(loaded.body)}`);
  const { body } = await runtime.run({ turn });
  if ((body as { turn?: number }).turn !== turn) throw new Error(`The runtime answered ${JSON.stringify(body)}`);
}

/** Times from a fresh process to the result of the same function. */
async function measureColdStarts(context: BenchContext, launch: RuntimeLaunch, echo: EchoFunction): Promise<number[]> {
  const coldMs: number[] = [];
  for (let turn = 0; turn < coldStarts; turn += 1) {
    const startedMs = performance.now();
    const runtime = new RuntimeProcess(launch);
    context.cleanup.add('a cold start', () => runtime.close());
    await runtime.frame((frame) => frame.type === 1);
    await callOnce(runtime, echo, turn);
    coldMs.push(performance.now() - startedMs);
    await runtime.close();
  }
  return coldMs;
}
