import { readdirSync, readFileSync } from 'node:fs';
import type { BenchContext, Measurement } from '../bench.js';
import { median } from '../statistics.js';
import { compileFunction, echoSource, launchNative, requireInjector } from './inject-native.js';
import { PythonPlace } from './inject-python.js';

const injections = 100_000;
const compared = 1000;
/** Injections that are not compared, because of first-use costs of both processes. */
const warmUps = 1000;

const residentMiB = (pid: number) =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
const descriptors = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;

/** A pre-warmer, and a function that injects into it and unloads again. */
interface Served {
  pid: number;
  serve(): Promise<unknown>;
}

async function run({ serve }: Served, count: number): Promise<number[]> {
  const elapsedMs: number[] = [];
  for (let i = 0; i < count; i += 1) {
    const start = performance.now();
    await serve();
    elapsedMs.push(performance.now() - start);
  }
  return elapsedMs;
}

/**
 * Growth of a pre-warmer's resident memory over 100,000 injections, and its slowdown. The slowdown is a fraction of
 * medians: its last thousand injections against the first thousand of another pre-warmer, in turns, so that changes of
 * the machine's speed cancel out. Throws if a descriptor leaks in the pre-warmer or in this process.
 */
async function measureLeak(
  kind: string,
  launch: () => Promise<Served>,
  say: BenchContext['say'],
): Promise<Measurement[]> {
  const old = await launch();
  await run(old, warmUps);
  const before = { memory: residentMiB(old.pid), open: descriptors(old.pid), own: descriptors(process.pid) };
  for (let done = 0; done < injections - compared; done += 10_000) {
    await run(old, Math.min(10_000, injections - compared - done));
    say(`  ${kind}: ${done} injections done`);
  }
  if (descriptors(old.pid) !== before.open || descriptors(process.pid) > before.own) {
    throw new Error('A descriptor leaks.');
  }
  const young = await launch();
  await run(young, warmUps);
  const early: number[] = [];
  const late: number[] = [];
  for (let turn = 0; turn < compared; turn += 1) {
    early.push(...(await run(young, 1)));
    late.push(...(await run(old, 1)));
  }
  return [
    { name: `${kind}LeakMiB`, value: residentMiB(old.pid) - before.memory },
    { name: `${kind}Slowdown100k`, value: median(late) / median(early) - 1 },
  ];
}

/** measureLeak of a native pre-warmer. */
export async function measureNativeLeak({ temporaryDir, cleanup, say }: BenchContext): Promise<Measurement[]> {
  const injector = requireInjector();
  const echo = compileFunction(temporaryDir, 'echo', echoSource);
  const first = { argument: '{}', timeoutMs: 10_000 };
  const launch = async (): Promise<Served> => {
    const { target, pid } = await launchNative(injector);
    cleanup.add('pre-warmer', () => injector.end(target));
    const serve = async (): Promise<void> => {
      const loaded = await injector.inject(target, echo.code, { digest: echo.digest, first });
      const unloaded = await injector.unload(target);
      if (!loaded.ready || !unloaded.ready) throw new Error(loaded.message + unloaded.replace);
    };
    return { pid, serve };
  };
  return measureLeak('native', launch, say);
}

/** measureLeak of a Python pre-warmer. */
export async function measurePythonLeak({ temporaryDir, cleanup, say }: BenchContext): Promise<Measurement[]> {
  const place = await PythonPlace.find(temporaryDir);
  const launch = async (): Promise<Served> => {
    const launched = await place.launch();
    cleanup.add('Python pre-warmer', () => place.injector.end(launched.target));
    return { pid: launched.pid, serve: () => place.serve(launched) };
  };
  return measureLeak('python', launch, say);
}
