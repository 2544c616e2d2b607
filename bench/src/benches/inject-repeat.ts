import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { RuntimeProcess } from '@gpuwhisk/test/runtimes/runtime-harness';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import { readTree } from '../processes.js';
import { compileFunction, echoSource } from './inject-native.js';
import { launchOf, type EchoFunction } from './inject-runtime.js';

const warmUps = 300;
const callsPerRound = 1000;
const pythonCode = 'def main(args):\n  return args\n';
const nsPerMs = 1e6;

/**
 * Repeat calls of injected functions that return their input, over the runtime's sockets: `repeatMs.KIND` is the median of a
 * call, `repeatCpuMs.KIND` the processor time that proxy and pre-warmer take for one. `...KIND.proxied` are the same where the
 * pair has no socket for runs, so that each call passes through the proxy; in turns.
 */
export async function measureRepeats(context: BenchContext): Promise<Measurement[]> {
  const native = compileFunction(context.temporaryDir, 'repeated', echoSource);
  const nativeEcho = { code: native.code.toString('base64'), main: 'main', binary: true, digest: native.digest };
  const digest = createHash('sha256').update(pythonCode).digest('hex');
  const pythonEcho = { code: pythonCode, main: 'main', binary: false, digest };
  return [
    ...(await measureKind(context, 'native', await launchOf(context, 'native', () => true), nativeEcho)),
    ...(await measureKind(context, 'python', (await launchOf(context, 'python', () => true))?.pair, pythonEcho)),
  ];
}

async function measureKind(
  context: BenchContext,
  kind: string,
  launch: RuntimeLaunch | undefined,
  echo: EchoFunction,
): Promise<Measurement[]> {
  if (launch?.servesRuns !== true) return [];
  const env = Object.fromEntries(Object.entries(launch.env).filter(([name]) => name !== 'GPUWHISK_RUNS_FD'));
  const ways = [
    { name: kind, runtime: await load(context, launch, echo) },
    { name: `${kind}.proxied`, runtime: await load(context, { ...launch, env, servesRuns: false }, echo) },
  ].map((way) => ({ ...way, eachMs: [] as number[], cpuMs: [] as number[] }));
  for (let round = 0; round < context.options.rounds; round += 1) {
    for (const { runtime, eachMs, cpuMs } of round % 2 === 0 ? ways : ways.toReversed()) {
      const beforeNs = usedNs(runtime.pid ?? 0);
      eachMs.push(...(await repeat(runtime, callsPerRound)));
      cpuMs.push((usedNs(runtime.pid ?? 0) - beforeNs) / nsPerMs / callsPerRound);
    }
  }
  for (const { runtime } of ways) await runtime.close();
  return ways.flatMap(({ name, eachMs, cpuMs }) => [
    medianOf(`repeatMs.${name}`, eachMs),
    medianOf(`repeatCpuMs.${name}`, cpuMs),
  ]);
}

async function load(context: BenchContext, launch: RuntimeLaunch, echo: EchoFunction): Promise<RuntimeProcess> {
  const runtime = new RuntimeProcess(launch);
  context.cleanup.add('runtime', () => runtime.close());
  const { isError, body } = await runtime.init({ ...echo, env: { __OW_NAMESPACE: 'bench' } });
  if (isError) throw new Error(`the function was not loaded: ${JSON.stringify(body)}`);
  await repeat(runtime, warmUps);
  return runtime;
}

/** Times of `count` calls, ms. Throws Error if one fails. */
async function repeat(runtime: RuntimeProcess, count: number): Promise<number[]> {
  const eachMs: number[] = [];
  for (let call = 0; call < count; call += 1) {
    const request = { activation_id: `${call}`.padStart(32, '0'), deadline: String(Date.now() + 60_000) };
    const startMs = performance.now();
    const { isError, body } = await runtime.run({ name: 'Ada' }, request);
    eachMs.push(performance.now() - startMs);
    if (isError) throw new Error(`a call failed: ${JSON.stringify(body)}`);
    runtime.frames.length = 1; // The hello. Answers are looked for in the list.
  }
  return eachMs;
}

/** Processor time of a process and those below it, ns. */
function usedNs(pid: number): number {
  const { descendants } = readTree(pid);
  return [pid, ...descendants.map((one) => one.pid)]
    .flatMap((one) => readdirSync(`/proc/${one}/task`).map((thread) => `/proc/${one}/task/${thread}/schedstat`))
    .map((file) => Number.parseInt(readFileSync(file, 'utf8'), 10))
    .reduce((sum, ns) => sum + ns, 0);
}
