import { readdirSync, readFileSync } from 'node:fs';
import type { BenchContext, Measurement } from '../bench.js';
import { median } from '../statistics.js';
import { compileFunction, echoSource, launchNative, requireInjector } from './inject-objects.js';
import { PythonPlace } from './inject-python.js';

const injections = 100_000;
const compared = 1000;
/** Not compared: first-use costs of both processes. */
const warmUps = 1000;

const residentMiB = (pid: number) =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
const descriptors = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;

/**
 * 100,000 injections into the pre-warmer `pid`, each made by `serve`: growth of its resident memory, and how much slower
 * the last thousand are than the first (a fraction, of the medians). Throws if a descriptor is left, there or here.
 */
async function measureLeak(
  kind: string,
  pid: number,
  serve: () => Promise<unknown>,
  say: BenchContext['say'],
): Promise<Measurement[]> {
  async function run(count: number): Promise<number[]> {
    const elapsedMs: number[] = [];
    for (let i = 0; i < count; i += 1) {
      const start = performance.now();
      await serve();
      elapsedMs.push(performance.now() - start);
    }
    return elapsedMs;
  }

  await run(warmUps);
  const before = { memory: residentMiB(pid), open: descriptors(pid), own: descriptors(process.pid) };
  const early = median(await run(compared));
  for (let done = compared; done < injections - compared; done += 10_000) {
    await run(Math.min(10_000, injections - compared - done));
    say(`  ${kind}: ${done} injections done`);
  }
  const late = median(await run(compared));
  if (descriptors(pid) !== before.open || descriptors(process.pid) > before.own) throw new Error('A descriptor leaks.');
  return [
    { name: `${kind}LeakMiB`, value: residentMiB(pid) - before.memory },
    { name: `${kind}Slowdown100k`, value: late / early - 1 },
  ];
}

export async function measureNativeLeak({ temporaryDir, cleanup, say }: BenchContext): Promise<Measurement[]> {
  const injector = requireInjector();
  const echo = compileFunction(temporaryDir, 'echo', echoSource);
  const { target, pid } = await launchNative(injector);
  cleanup.add('pre-warmer', () => injector.end(target));
  const first = { argument: '{}', timeoutMs: 10_000 };
  async function serve(): Promise<void> {
    const loaded = await injector.inject(target, echo.code, { digest: echo.digest, first });
    const unloaded = await injector.unload(target);
    if (!loaded.ready || !unloaded.ready) throw new Error(loaded.message + unloaded.replace);
  }
  return measureLeak('native', pid, serve, say);
}

export async function measurePythonLeak({ temporaryDir, cleanup, say }: BenchContext): Promise<Measurement[]> {
  const place = await PythonPlace.find(temporaryDir);
  const launched = await place.launch();
  cleanup.add('Python pre-warmer', () => place.injector.end(launched.target));
  return measureLeak('python', launched.pid, () => place.serve(launched), say);
}
