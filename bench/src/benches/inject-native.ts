import type { InjectionOutcome } from '@gpuwhisk/test/native/inject-addon';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import { percentile } from '../statistics.js';
import { compileFunction, crashSource, echoSource, launchNative, requireInjector } from './inject-objects.js';

const fewestRuns = 300;
const warmUps = 50;
const coldRuns = 30;
const call = { argument: '{"name":"Ada"}', timeoutMs: 10_000 };

const msOf = (outcomes: readonly InjectionOutcome[], name?: string) =>
  outcomes
    .flatMap(({ stages }) => stages)
    .filter((stage) => name === undefined || stage.name === name)
    .reduce((sum, { us }) => sum + us / 1000, 0);

/**
 * `nativeMs`: ready check, first call of a function that returns its input, restore, verify and detach, as the tracer
 * spends it; `nativeWallMs`: as Node.js sees it, with the ways to the tracer's thread and back.
 */
export async function measureNative({ options, temporaryDir, cleanup }: BenchContext): Promise<Measurement[]> {
  const injector = requireInjector();
  const echo = compileFunction(temporaryDir, 'echo', echoSource);
  const crash = compileFunction(temporaryDir, 'crash', crashSource);
  const { target } = await launchNative(injector);
  cleanup.add('pre-warmer', () => injector.end(target));

  const tracerMs: number[] = [];
  const wallMs: number[] = [];
  const verifyMs: number[] = [];
  for (let run = 0; run < warmUps + Math.max(fewestRuns, options.samples); run += 1) {
    const start = performance.now();
    const loaded = await injector.inject(target, echo.code, { digest: echo.digest, first: call });
    const unloaded = await injector.unload(target);
    const elapsedMs = performance.now() - start;
    if (loaded.result !== call.argument || !unloaded.ready) throw new Error(loaded.message + unloaded.replace);
    if (run < warmUps) continue;
    wallMs.push(elapsedMs);
    tracerMs.push(msOf([loaded, unloaded]));
    verifyMs.push(msOf([unloaded], 'verify'));
  }

  const rollbackMs: number[] = [];
  for (let run = 0; run < Math.max(fewestRuns, options.samples); run += 1) {
    const outcome = await injector.inject(target, crash.code, { digest: crash.digest, first: call });
    if (outcome.kind !== 'signal' || !outcome.ready) throw new Error(`no rollback: ${JSON.stringify(outcome)}`);
    rollbackMs.push(['restore', 'verify', 'detach'].reduce((sum, name) => sum + msOf([outcome], name), 0));
  }

  const coldMs: number[] = [];
  for (let run = 0; run < coldRuns; run += 1) {
    const start = performance.now();
    const fresh = await launchNative(injector);
    await injector.inject(fresh.target, echo.code, { digest: echo.digest, first: call });
    coldMs.push(performance.now() - start);
    await injector.end(fresh.target);
  }
  return [
    medianOf('nativeMs', tracerMs),
    { name: 'nativeP99Ms', value: percentile(tracerMs, 99) },
    medianOf('nativeVerifyMs', verifyMs),
    medianOf('nativeWallMs', wallMs),
    medianOf('nativeColdMs', coldMs),
    medianOf('rollbackMs', rollbackMs),
    { name: 'rollbackP99Ms', value: percentile(rollbackMs, 99) },
  ];
}
