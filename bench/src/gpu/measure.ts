import { join } from 'node:path';
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { Share } from '@gpuwhisk/common/gpu';
import { tokenLibraryPath, TokenServer } from '@gpuwhisk/invoker/gpu-agent/enforcers/tokens/token-server';
import type { Measurement } from '../bench.js';
import { WorkerError } from './gpu-worker.js';
import type { Activity, GpuMachine } from './machine.js';
import { coLocationMetrics, measurePlan } from './co-location.js';
import { driverWorkloads, kindOf, mixOf, simulatedWorkloads, torchWorkloads } from './workloads.js';

/** Context of a part of the benchmark. */
export interface GpuRun {
  machine: GpuMachine;
  /** Whether PyTorch is installed and sees the device. */
  torch: boolean;
  seconds: number;
  /** Number of samples of several processes. */
  samples: number;
  seed: number;
  /** File of samples; an interrupted run continues from it. */
  samplesPath: string;
  temporaryDir: string;
  look(): Promise<Activity>;
  say(line: string): void;
}

const limits = [10, 25, 50, 75, 100];
const tokenWorkload = 'matmul:512';
/** Blocks in 5 ms, more than any device launches, so that the limit never takes effect. */
const unlimited = 1_000_000_000;

const metricOf = (workload: string, percent: number): string => `${workload.replace(':', '.')}Ms.${percent}`;

/** Latency of each workload alone, by its percentage of the SMs. */
async function measureAlone(run: GpuRun, workloads: readonly string[]): Promise<Measurement[]> {
  const classes = run.machine.mps ? [...shareClasses] : [100 as const];
  const measurements: Measurement[] = [];
  for (const percent of classes) {
    const worker = await run.machine.start(kindOf(workloads[0] ?? ''), { percent });
    try {
      for (const workload of workloads) {
        try {
          await worker.load(workload);
          measurements.push({ name: metricOf(workload, percent), value: (await worker.run(run.seconds)).medianMs });
        } catch (error) {
          if (!(error instanceof WorkerError)) throw error;
          run.say(`  ${workload} at ${percent} %: ${error.message}`); // Workloads that do not fit are left out.
        }
      }
    } finally {
      await worker.end();
    }
    run.say(`  ${percent} % done`);
  }
  return measurements;
}

/** Iterations a second under a limit of kernel tokens, as a fraction of the rate without a limit. */
async function measureTokens(run: GpuRun): Promise<Measurement[]> {
  const device = 'GPU-00000000-0000-0000-0000-000000000000'; // A token server with one ticket, which stands for any
  // device.
  const server = await TokenServer.start({ folder: join(run.temporaryDir, 'tokens') });
  const measurements: Measurement[] = [];
  try {
    const rateAt = async (percent: number, maxTokens: number): Promise<{ rate: number; blocks: number }> => {
      const smLimit = percent / 100;
      const memoryMiB = run.machine.memoryMiB;
      const share: Share = { shareClass: 100, smRequest: smLimit, smLimit, memoryMiB, tokens: { maxTokens } };
      const more = {
        LD_PRELOAD: tokenLibraryPath,
        GPUWHISK_TOKENS_SOCKET: server.socketPath,
        GPUWHISK_TOKENS_TICKET: server.ticketFor(device, share),
      };
      const worker = await run.machine.start('driver', { more });
      try {
        await worker.load(tokenWorkload);
        const client = server.clientOf(worker.pid);
        if (client === undefined) throw new WorkerError('The interception library is not in the process.');
        const before = server.figuresOf(client).taken;
        const { iterations, meanMs } = await worker.run(run.seconds);
        return { rate: 1000 / meanMs, blocks: (server.figuresOf(client).taken - before) / ((iterations * meanMs) / 5) };
      } finally {
        await worker.end();
      }
    };
    const alone = await rateAt(100, unlimited);
    for (const percent of limits) {
      const { rate } = await rateAt(percent, Math.max(1, Math.round(alone.blocks)));
      measurements.push({ name: `tokenThroughput.${percent}`, value: rate / alone.rate });
    }
  } finally {
    await server.close();
  }
  return measurements;
}

const ofDriver = (run: GpuRun): readonly string[] => (run.machine.simulated ? simulatedWorkloads : driverWorkloads);

/** Measures the missing samples and stores them in their file. Returns their number and slowdowns. */
async function measureColocation(run: GpuRun): Promise<Measurement[]> {
  const { machine, torch, samples, samplesPath, ...rest } = run;
  const mix = mixOf({ simulated: machine.simulated, torch });
  return coLocationMetrics(await measurePlan({ ...rest, machine, mix, count: samples, path: samplesPath }));
}

/** The parts of the benchmark, in their order. */
export const gpuParts: Readonly<Record<string, (run: GpuRun) => Promise<Measurement[]>>> = {
  matmul: (run) => measureAlone(run, ofDriver(run)),
  torch: (run) => (run.torch ? measureAlone(run, torchWorkloads) : Promise.resolve([])),
  tokens: measureTokens,
  colocation: measureColocation,
};
