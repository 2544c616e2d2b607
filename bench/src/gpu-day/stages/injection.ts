// Injection with a CUDA context: how soon a pair is ready again, and whether it keeps anything of a function.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { CudaContextKept } from '@gpuwhisk/common/prewarmer';
import type { InjectionOutcome, Injector, LaunchedPrewarmer } from '@gpuwhisk/test/native/inject-addon';
import { median } from '../../statistics.js';

const rounds = 20;
const wantedCrashes = 200;
const callLimitMs = 60_000;
const programLimitMs = 120_000;
const held = [
  { name: '512MiB', mib: 512 },
  { name: '2GiB', mib: 2048 },
  { name: '8GiB', mib: 8192 },
];

/** What a stage of the day is given. */
export interface InjectionMeasurementOptions {
  /** Whether the driver is the stand-in, whose socket is in `env`: device memory is held there, but not written. */
  simulated: boolean;
  /** Folder of the built native parts. */
  native: string;
  env: NodeJS.ProcessEnv;
  /** Time for all of it; crashes end when it is over. */
  budgetMs: number;
  say(line: string): void;
}

/** Medians in ms, and counts; `failures` are sentences about what could not be measured, or did not hold. */
export interface InjectionMeasurement {
  metrics: Record<string, number>;
  failures: string[];
}

interface Report {
  error: number;
  onDevice: number;
  onHost: number;
}

/** Measures pairs that keep their CUDA context for functions of one owner, and by checkpoints of the driver. */
export async function measureInjection(given: InjectionMeasurementOptions): Promise<InjectionMeasurement> {
  const untilMs = performance.now() + given.budgetMs;
  const pairs = new Pairs(given);
  const metrics: Record<string, number> = {};
  const failures: string[] = [];
  const attempt = async (name: string, way: CudaContextKept, work: (pair: Pair) => Promise<void>): Promise<void> => {
    const pair = await pairs.launch(way).catch((error: unknown) => String(error));
    if (typeof pair === 'string') {
      failures.push(`${name}: no pair: ${pair}`);
      return;
    }
    try {
      await work(pair);
    } catch (error) {
      failures.push(`${name}: ${String(error)}`);
    } finally {
      await pair.end();
    }
  };

  await attempt('same owner', 'owner', async (pair) => {
    metrics['readyAgainMs.sameOwner'] = median(await timesUntilReady(pair));
  });
  await attempt('checkpoint', 'checkpoint', async (pair) => {
    metrics['readyAgainMs.checkpoint'] = median(await timesUntilReady(pair));
  });
  await attempt('secret', 'checkpoint', async (pair) => {
    const own = await pair.serve({ plant: 1, look: 1 });
    if (own.onHost === 0 || own.onDevice === 0) throw new Error('The search does not find what is there.');
    await pair.unload();
    const { onDevice, onHost } = await pair.serve({ look: 1 });
    metrics['injection.secretFound'] = onDevice + onHost;
    if (onDevice + onHost > 0)
      failures.push(`secret: found ${onDevice} times on the device, ${onHost} times on the host`);
  });
  for (const { name, mib } of held) {
    if (performance.now() > untilMs) failures.push(`checkpoint of ${name}: the time is over`);
    else
      await attempt(`checkpoint of ${name}`, 'checkpoint', async (pair) => {
        const key = `readyAgainMs.checkpoint.${name}`;
        await pair.serve({ hold: mib, ...(!given.simulated && { fill: 1 }) });
        const steps = await pairs.checkpoint(pair.pid);
        for (const [step, ms] of Object.entries(steps)) metrics[`${key}.${step}`] = ms;
        metrics[key] = await pair.readyAgain();
        given.say(`checkpoint of ${name}: ${JSON.stringify(steps)}, ready again after ${metrics[key]?.toFixed(1)} ms`);
      });
  }
  await attempt('crashes', 'checkpoint', async (pair) => {
    let crashes = 0;
    while (crashes < wantedCrashes && performance.now() < untilMs) {
      await pair.crash();
      crashes += 1;
      metrics['injection.crashes'] = crashes;
    }
    await pair.serve({});
    if (crashes < wantedCrashes) failures.push(`crashes: only ${crashes} of ${wantedCrashes} in the time`);
  });
  return { metrics, failures };
}

async function timesUntilReady(pair: Pair): Promise<number[]> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await pair.serve({});
    times.push(await pair.readyAgain());
  }
  return times;
}

/** Starts pairs, and the program that takes a checkpoint step by step. */
class Pairs {
  private readonly injector: Injector;
  private readonly code: Buffer;
  private readonly variables: Record<string, string>;

  constructor(private readonly given: InjectionMeasurementOptions) {
    this.injector = createRequire(import.meta.url)(join(given.native, 'inject.node')) as Injector;
    this.code = readFileSync(join(given.native, 'gpu-day', 'function.so'));
    const set = Object.entries(given.env).filter((one): one is [string, string] => one[1] !== undefined);
    this.variables = Object.fromEntries(set);
    if (given.simulated) this.variables['LD_LIBRARY_PATH'] = join(given.native, 'cudasim');
  }

  /** Rejects if the driver keeps the context in another way. */
  async launch(way: CudaContextKept): Promise<Pair> {
    const { native, simulated } = this.given;
    const ledger = { LD_PRELOAD: join(native, 'tokens', 'libgpuwhisk-tokens.so') };
    const keep = { GPUWHISK_CUDA: 'true', GPUWHISK_CUDA_KEEP: way, ...(way === 'owner' && ledger) };
    const socket = this.variables['GPUWHISK_SIM_SOCKET'];
    const writable = simulated && socket !== undefined ? ['--write', join(socket, '..')] : [];
    const launched = await this.injector.launch({
      program: join(native, 'prewarmer'),
      arguments: ['--read', native, ...writable],
      environment: Object.entries({ ...this.variables, ...keep }).map(([name, value]) => `${name}=${value}`),
      checkpoint: [join(native, 'proxy'), '--checkpoint'],
    });
    const pair = new Pair(this.injector, launched, this.code, [`${native}/`]);
    if (launched.cuda === way) return pair;
    await pair.end();
    throw new Error(`The context is kept by '${launched.cuda}', not by '${way}'.`);
  }

  /** Times of the four calls of the driver, ms; the process goes on afterwards. */
  async checkpoint(pid: number): Promise<Record<'lock' | 'checkpoint' | 'restore' | 'unlock', number>> {
    const program = join(this.given.native, 'gpu-day', 'checkpoint');
    const options = { env: this.variables, timeout: programLimitMs };
    const { stdout } = await promisify(execFile)(program, [String(pid)], options);
    const [lock = NaN, checkpoint = NaN, restore = NaN, unlock = NaN] = stdout.trim().split(' ').map(Number);
    return { lock, checkpoint, restore, unlock };
  }
}

class Pair {
  private readonly digest: string;

  constructor(
    private readonly injector: Injector,
    private readonly launched: LaunchedPrewarmer,
    private readonly code: Buffer,
    private readonly libraryFolders: string[],
  ) {
    this.digest = createHash('sha256').update(code).digest('hex');
  }

  get pid(): number {
    return this.launched.pid;
  }

  /** Loads the function and calls it. Rejects if it or the driver fails. */
  async serve(argument: object): Promise<Report> {
    const outcome = await this.inject(argument);
    if (outcome.kind !== 'result') throw new Error(`The function failed: ${outcome.message}`);
    const report = JSON.parse(outcome.result) as Report;
    if (report.error !== 0) throw new Error(`The driver answered ${report.error}.`);
    return report;
  }

  /** Loads the function and lets it crash, with a secret on the device. Rejects if the pair does not survive that. */
  async crash(): Promise<void> {
    const outcome = await this.inject({ hold: 1, crash: 1 });
    if (outcome.kind !== 'signal') throw new Error(`The function did not crash: ${outcome.kind}`);
    if (!outcome.ready) throw new Error(`A crash ended the pair: ${outcome.replace}`);
  }

  /** Takes the function back. Rejects if the pair ends with it. */
  async unload(): Promise<void> {
    const outcome = await this.injector.unload(this.launched.target);
    if (!outcome.ready) throw new Error(`The pair ended: ${outcome.replace}`);
  }

  /** Time from the beginning of an unload until the next function can be loaded, ms. */
  async readyAgain(): Promise<number> {
    const beganMs = performance.now();
    await this.unload();
    const unloadedMs = performance.now();
    const { stages } = await this.inject({});
    const restoreUs = stages.find(({ name }) => name === 'restore device')?.us ?? 0;
    await this.unload();
    return unloadedMs - beganMs + restoreUs / 1000;
  }

  end(): Promise<void> {
    return this.injector.end(this.launched.target);
  }

  private inject(argument: object): Promise<InjectionOutcome> {
    const { digest, libraryFolders } = this;
    const first = { argument: JSON.stringify(argument), timeoutMs: callLimitMs };
    return this.injector.inject(this.launched.target, this.code, { digest, libraryFolders, first });
  }
}
