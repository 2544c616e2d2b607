import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nativePrewarmerPath } from '@gpuwhisk/invoker/host/native-programs';
import {
  loadInjector,
  type InjectionOutcome,
  type Injector,
  type LaunchedPrewarmer,
} from '@gpuwhisk/test/native/inject-addon';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import { percentile } from '../statistics.js';

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
 * Times of a native injection. `nativeMs`: ready check, first call of a function that returns its input, restore,
 * verify and detach, measured by the tracer. `nativeWallMs`: the same measured by Node.js, with the ways to and from
 * the tracer's thread.
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
    if (outcome.kind !== 'signal' || !outcome.ready)
      throw new Error(`The injection was not rolled back: ${JSON.stringify(outcome)}`);
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

const compileTimeoutMs = 60_000;

/** A shared object and its digest. */
export interface NativeFunction {
  code: Buffer;
  digest: string;
}

/** Source of a function that returns its input; its data makes the shared object about 64 KiB. */
export const echoSource = `
__attribute__((used)) static const char room[49000] = {1};
const char *gpuwhisk_main(const char *json) { return json; }`;

/** Source of a function that ends with a memory fault. */
const crashSource = `
const char *gpuwhisk_main(const char *json) { static int *volatile nowhere; *nowhere = 1; return json; }`;

/** Compiles C source in `folder`. Throws with the compiler's output. */
export function compileFunction(folder: string, name: string, source: string): NativeFunction {
  const file = join(folder, `${name}.c`);
  const object = join(folder, `${name}.so`);
  writeFileSync(file, source);
  execFileSync('cc', ['-O2', '-shared', '-fPIC', '-o', object, file], { timeout: compileTimeoutMs });
  const code = readFileSync(object);
  return { code, digest: createHash('sha256').update(code).digest('hex') };
}

/** The addon. Throws if it is not built. */
export function requireInjector(): Injector {
  const injector = loadInjector();
  if (!injector) throw new Error('The inject bench needs native/build/inject.node: a C++ compiler on x86-64 Linux.');
  return injector;
}

/** A native pre-warmer, which the caller must end. Rejects if it does not start. */
export function launchNative(injector: Injector): Promise<LaunchedPrewarmer> {
  return injector.launch({ program: nativePrewarmerPath, environment: ['PATH=/usr/bin:/bin'] });
}
