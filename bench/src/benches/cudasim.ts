import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { medianOf } from '../bench.js';
import type { Bench, BenchContext, Measurement } from '../bench.js';
import { repositoryDir } from '../machine.js';
import { readStandInModel, standInSlowdowns } from '../stand-in-model.js';

/** Kernels of a run; each takes all SMs of an A100 for one millisecond. */
const kernels = 500;
const computeBound = '864 1000000 0';
/** A kernel that takes the whole bandwidth of an A100 for one millisecond: 864 blocks of 1.8 MB at 1555 GB/s. */
const memoryBound = '864 100000 1799769';
const a100Sms = 108;
/** A workload that fills an A100, as these kernels do. */
const filling = { workload: 'resnet50', batch: 16, percent: 100 };
const greatestAllocation = 64 * 1024 * 1024;
const granule = 512;

const parts = { shares: measureShares, launch: measureLaunch, memory: measureMemory, clients: countClients } as const;

/** The stand-in for a GPU, compared with its own model. */
export const cudasim: Bench = {
  summary: 'the stand-in driver: accuracy of its times, launch cost, memory, number of clients',
  parts: Object.keys(parts),
  simulated: true,
  async run(context) {
    const device = await startDevice(context);
    const measurements: Measurement[] = [];
    for (const [name, measure] of Object.entries(parts)) {
      if (context.options.parts.length > 0 && !context.options.parts.includes(name)) continue;
      measurements.push(...(await measure(context, device)));
      context.say(`  ${name} done`);
    }
    return measurements;
  },
};

async function startReady(device: SimulatedDevice, share?: number): Promise<SimulatedClient> {
  const client = device.start(share);
  await client.tell('context');
  return client;
}

/** Time of `count` kernels by the client's own clock, ms. */
async function hostMs(client: SimulatedClient, count: number, kind: string): Promise<number> {
  const [, , ms] = await client.tell(`run ${count} ${kind}`);
  return ms as number;
}

/** Greatest difference between the slowdowns of a pair and the model's, as a fraction. */
async function pairError(
  device: SimulatedDevice,
  soloMs: number,
  pair: readonly { share?: number; slowdown: number; count: number }[],
  kind: string,
): Promise<number> {
  const clients = await Promise.all(pair.map(({ share }) => startReady(device, share)));
  const took = await Promise.all(
    clients.map((client, i) => hostMs(client, (pair[i] as { count: number }).count, kind)),
  );
  await Promise.all(clients.map((client) => client.end()));
  const errors = pair.map(
    ({ slowdown, count }, i) => (took[i] as number) / (soloMs * (count / kernels)) / slowdown - 1,
  );
  return Math.max(...errors.map(Math.abs));
}

async function measureShares({ options }: BenchContext, device: SimulatedDevice): Promise<Measurement[]> {
  const alone = await startReady(device, 100);
  const [fitted = 0] = standInSlowdowns(readStandInModel(), 'a100-40', [filling, filling]);
  const solo: number[] = [];
  const errors: Record<string, number[]> = {};
  for (let round = 0; round < options.rounds; round += 1) {
    const soloMs = await hostMs(alone, kernels, computeBound);
    const soloMemoryMs = await hostMs(alone, kernels, memoryBound);
    solo.push(soloMs);
    const equal = { slowdown: 2, count: kernels };
    const whole = { slowdown: fitted, count: kernels };
    const cases = {
      share50Error: await pairError(
        device,
        soloMs,
        [
          { ...equal, share: 50 },
          { ...equal, share: 50 },
        ],
        computeBound,
      ),
      share30Error: await pairError(
        device,
        soloMs,
        [30, 70].map((share) => {
          const slowdown = a100Sms / Math.floor((a100Sms * share) / 100);
          return { share, slowdown, count: Math.round(kernels / slowdown) };
        }),
        computeBound,
      ),
      share100Error: await pairError(
        device,
        soloMs,
        [
          { ...whole, share: 100 },
          { ...whole, share: 100 },
        ],
        computeBound,
      ),
      bandwidthError: await pairError(
        device,
        soloMemoryMs,
        [
          { ...equal, share: 100 },
          { ...equal, share: 100 },
        ],
        memoryBound,
      ),
      turnsError: await pairError(device, soloMs, [equal, equal], computeBound),
    };
    for (const [name, error] of Object.entries(cases)) (errors[name] ??= []).push(error);
  }
  await alone.end();
  return [medianOf('soloMs', solo), ...Object.entries(errors).map(([name, values]) => medianOf(name, values))];
}

async function measureLaunch({ options }: BenchContext, device: SimulatedDevice): Promise<Measurement[]> {
  const client = await startReady(device, 100);
  const launchNs: number[] = [];
  for (let round = 0; round < options.rounds; round += 1) {
    const [, ns] = await client.tell('launches 5000');
    launchNs.push(ns as number);
  }
  await client.end();
  return [medianOf('launchNs', launchNs)];
}

/** Allocates and frees at random, and compares the free memory with the sum of allocations. */
async function measureMemory({ options }: BenchContext, device: SimulatedDevice): Promise<Measurement[]> {
  const client = await startReady(device, 100);
  const freeBytes = async (): Promise<number> => (await client.tell('info'))[1] as number;
  const before = await freeBytes();
  const sizes = new Map<number, number>();
  let state = options.seed;
  // Park and Miller's minimal standard generator.
  const random = (below: number): number => (state = (state * 48271) % 2147483647) % below;
  let worst = 0;
  for (let step = 0; step < 400; step += 1) {
    const held = [...sizes.keys()];
    if (held.length > 0 && random(3) === 0) {
      const index = held[random(held.length)] as number;
      await client.tell(`free ${index}`);
      sizes.delete(index);
    } else {
      const bytes = 1 + random(greatestAllocation);
      const [, index] = await client.tell(`alloc ${bytes}`);
      sizes.set(index as number, Math.ceil(bytes / granule) * granule);
    }
    const heldBytes = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    worst = Math.max(worst, Math.abs(before - (await freeBytes()) - heldBytes));
  }
  await client.end();
  return [{ name: 'memoryErrorBytes', value: worst }];
}

/** Number of clients that MPS takes; it refuses the next one with error 808. */
async function countClients(_context: BenchContext, device: SimulatedDevice): Promise<Measurement[]> {
  const clients: SimulatedClient[] = [];
  let result = 0;
  while (result === 0 && clients.length < 100) {
    const client = device.start(100);
    clients.push(client);
    [result] = (await client.tell('context', [0, 808])) as [number];
  }
  await Promise.all(clients.map((client) => client.end()));
  if (result !== 808) throw new Error(`No client is refused after ${clients.length}: ${result}`);
  return [{ name: 'clientsAdmitted', value: clients.length - 1 }];
}

const folder = join(repositoryDir, 'native/build/cudasim');
const answerWithinMs = 120_000;

/** A program on the stand-in's driver; native/cudasim/examples/client.c lists its commands. */
interface SimulatedClient {
  /** Sends a command; resolves with the numbers after the CUresult. Rejects if the CUresult is not in `results`. */
  tell(command: string, results?: readonly number[]): Promise<number[]>;
  end(): Promise<void>;
}

/** An A100 of 40 GB of the stand-in, with an MPS daemon. */
interface SimulatedDevice {
  /** Starts a process; with a share, in percent, the process is a client of MPS. */
  start(share?: number): SimulatedClient;
}

async function endOf(child: ChildProcess): Promise<void> {
  child.stdin?.end();
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

/** Starts a program of the stand-in; resolves when the program reports that it is ready. */
export async function startHelper(
  context: BenchContext,
  program: string,
  args: string[],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const child = spawn(join(folder, program), args, { stdio: ['pipe', 'pipe', 'inherit'], env });
  context.cleanup.add(program, () => endOf(child));
  const early = once(child, 'exit').then(() => Promise.reject(new Error(`${program} does not start.`)));
  await Promise.race([once(child.stdout, 'data'), early]);
  early.catch(() => undefined);
}

/** Starts the daemon, and MPS on its device. Throws if the stand-in is not built. */
async function startDevice(context: BenchContext): Promise<SimulatedDevice> {
  if (!existsSync(join(folder, 'daemon'))) throw new Error('The stand-in driver was not built: no C++ compiler.');
  const socket = join(context.temporaryDir, 'sim');
  const pipes = join(context.temporaryDir, 'mps');
  const env = { ...process.env, GPUWHISK_SIM_SOCKET: socket, LD_LIBRARY_PATH: folder };
  const quick = ['--context-ms', '5', '--seed', String(context.options.seed)];
  await startHelper(context, 'daemon', ['--socket', socket, '--gpus', 'a100-40', ...quick], env);
  await startHelper(context, 'control', ['mps', pipes, '0'], env);
  return {
    start(share) {
      const mps = { CUDA_MPS_PIPE_DIRECTORY: pipes, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: String(share) };
      return startClient(context, share === undefined ? env : { ...env, ...mps });
    },
  };
}

function startClient(context: BenchContext, env: NodeJS.ProcessEnv): SimulatedClient {
  const child = spawn(join(folder, 'client'), [], { stdio: ['pipe', 'pipe', 'inherit'], env });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  context.cleanup.add('client of the stand-in', () => endOf(child));
  return {
    async tell(command, results = [0]) {
      const timer = setTimeout(() => child.kill('SIGKILL'), answerWithinMs);
      child.stdin.write(`${command}\n`);
      const { value, done } = await lines.next();
      clearTimeout(timer);
      if (done) throw new Error(`A client ended at ${command}.`);
      const [result, ...rest] = (value as string).split(' ').map(Number);
      if (!results.includes(result as number)) throw new Error(`${command}: CUresult ${result}`);
      return [result as number, ...rest];
    },
    end: () => endOf(child),
  };
}
