import { createHash } from 'node:crypto';
import { mkdtempSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import type { Injector, LaunchedPrewarmer, InjectionOutcome } from '@gpuwhisk/test/native/inject-addon';
import { pythonInjection, pythonPrewarmer } from '@gpuwhisk/invoker/runtimes/python-runtime';
import { findPython, type Python } from '@gpuwhisk/invoker/runtimes/find-toolchains';
import { hostJobs } from '@gpuwhisk/invoker/containers/sandbox/sandbox-job';
import { installRequirements } from '@gpuwhisk/invoker/runtimes/requirements-cache';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import { repositoryDir } from '../machine.js';
import { percentile } from '../statistics.js';
import { requireInjector } from './inject-native.js';

const fewestRuns = 300;
const warmUps = 100;
const calls = 200;
/** Calls of the comparison for `errorXXSpeedup`; few, since each crash costs a start of the interpreter. */
const coldCalls = 40;
const call = { argument: '{"name":"Ada"}', timeoutMs: 10_000 };

const echo = Buffer.from('def main(args):\n  return args\n');
const crash = Buffer.from('import ctypes\ndef main(args):\n  here = 1\n  ctypes.string_at(0)\n');
const digests = new Map<Buffer, string>(
  [echo, crash].map((code) => [code, createHash('sha256').update(code).digest('hex')]),
);

/** Starts Python pre-warmers with numpy. */
export class PythonPlace {
  private readonly tracebacks = openSync('/dev/null', 'w');

  private constructor(
    readonly injector: Injector,
    private readonly python: Python,
    private readonly packages: string,
    private readonly folder: string,
  ) {}

  /** Installs numpy. Throws if Python or numpy cannot be installed. */
  static async find(temporaryDir: string): Promise<PythonPlace> {
    const python = await findPython(join(temporaryDir, 'python.json'));
    if (!python) throw new Error('There is no Python 3.8 or newer.');
    const installation = { run: hostJobs(systemClock), maxBytes: Infinity, dataDir: temporaryDir };
    const { folder } = await installRequirements(join(temporaryDir, 'packages'), python, ['numpy'], installation);
    return new PythonPlace(requireInjector(), python, folder, mkdtempSync(join(temporaryDir, 'functions-')));
  }

  launch(): Promise<LaunchedPrewarmer> {
    const options = { folder: this.folder, imports: ['numpy'], packages: [this.packages] };
    const how = pythonPrewarmer(join(repositoryDir, 'runtimes'), this.python, options);
    return this.injector.launch({ ...how, errors: this.tracebacks });
  }

  inject({ target }: LaunchedPrewarmer, code: Buffer): Promise<InjectionOutcome> {
    const digest = digests.get(code) as string;
    const how = pythonInjection(this.python, [this.packages]);
    return this.injector.inject(target, code, { digest, entry: 'main', first: call, ...how });
  }

  /** Injects and calls a function that returns its input, and unloads the function. Throws if a step fails. */
  async serve(launched: LaunchedPrewarmer): Promise<InjectionOutcome[]> {
    const loaded = await this.inject(launched, echo);
    if (loaded.kind !== 'result') throw new Error(loaded.message);
    const unloaded = await this.injector.unload(launched.target);
    if (!unloaded.ready) throw new Error(unloaded.replace);
    return [loaded, unloaded];
  }
}

const usOf = (outcomes: InjectionOutcome[], name?: string) =>
  outcomes
    .flatMap(({ stages }) => stages)
    .filter((stage) => name === undefined || stage.name === name)
    .reduce((sum, { us }) => sum + us, 0);

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/**
 * `pythonMs`: as `nativeMs`, with numpy loaded. `errorXXSpeedup`: mean time of calls of which XX % crash after their
 * first line, with injection, against killing and restarting the interpreter at each crash.
 */
export async function measurePython({ options, temporaryDir, cleanup, say }: BenchContext): Promise<Measurement[]> {
  const place = await PythonPlace.find(temporaryDir);
  const launched = await place.launch();
  cleanup.add('Python pre-warmer', () => place.injector.end(launched.target));
  const tracerMs: number[] = [];
  const verifyMs: number[] = [];
  const wallMs: number[] = [];
  for (let run = 0; run < warmUps + Math.max(fewestRuns, options.samples); run += 1) {
    const start = performance.now();
    const outcomes = await place.serve(launched);
    if (run < warmUps) continue;
    wallMs.push(performance.now() - start);
    tracerMs.push(usOf(outcomes) / 1000);
    verifyMs.push(usOf(outcomes, 'verify') / 1000);
  }
  const measurements = [
    medianOf('pythonMs', tracerMs),
    { name: 'pythonP99Ms', value: percentile(tracerMs, 99) },
    medianOf('pythonVerifyMs', verifyMs),
    medianOf('pythonWallMs', wallMs),
  ];
  for (const percent of [50, 90]) {
    const warmMs = await serveWithErrors(place, percent / 100, options.seed, calls, launched);
    const coldMs = await serveWithErrors(place, percent / 100, options.seed, coldCalls);
    say(`  ${percent} % crash: ${mean(warmMs).toFixed(2)} ms a call, ${mean(coldMs).toFixed(1)} ms with a new start`);
    measurements.push({ name: `error${percent}Speedup`, value: mean(coldMs) / mean(warmMs) });
  }
  return measurements;
}

/** Milliseconds of a call; without `kept`, a crashed interpreter is killed and the next one started. */
async function serveWithErrors(
  place: PythonPlace,
  errors: number,
  seed: number,
  count: number,
  kept?: LaunchedPrewarmer,
): Promise<number[]> {
  const random = seededRandom(seed);
  const elapsedMs: number[] = [];
  let launched = kept ?? (await place.launch());
  for (let i = 0; i < count; i += 1) {
    const crashes = randomFraction(random) < errors;
    const start = performance.now();
    if (!crashes) {
      await place.serve(launched);
    } else {
      const outcome = await place.inject(launched, crash);
      if (outcome.kind !== 'signal' || !outcome.ready)
        throw new Error(`The injection was not rolled back: ${JSON.stringify(outcome)}`);
      if (!kept) {
        await place.injector.end(launched.target);
        launched = await place.launch();
      }
    }
    elapsedMs.push(performance.now() - start);
  }
  if (!kept) await place.injector.end(launched.target);
  return elapsedMs;
}
