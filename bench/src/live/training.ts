// A training job on a simulated GPU, started as a user starts it, which logs the ends of its steps.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { guestKey } from '../api.js';
import type { Cleanup } from '../cleanup.js';
import { repositoryDir } from '../machine.js';
import type { LivePlatform } from './platform.js';

/** A training job. */
export interface TrainingPlan {
  /** A model of the stand-in. */
  model: string;
  batch: number;
  /** Time of the host between two steps, in which the GPU idles, ms. */
  hostMs: number;
  /** Part of its rate that it may lose, 0 to 1. */
  bound: number;
  /** Part of the SMs that it uses on average. */
  smUtil: number;
  /** File for the ends of its steps. */
  log: string;
}

/** A running training job. */
export interface Training {
  /** Sets the part of its rate that it may lose, 0 to 1. */
  setBound(bound: number): Promise<void>;
  /** The ends of its steps so far, epoch ms. */
  stepEnds(): Promise<number[]>;
  stop(): Promise<void>;
}

const program = `import sys
import time

sys.path.insert(0, sys.argv[1])
import gpuwhisk_sim
import gpuwhisk_training

model = gpuwhisk_sim.Model(sys.argv[3])
batch, host_s = int(sys.argv[4]), float(sys.argv[5]) / 1000
with open(sys.argv[2], "w", buffering=1) as log:
    while True:
        time.sleep(host_s)
        model.train_step(batch)
        gpuwhisk_training.step()
        log.write(f"{time.time() * 1000:.2f}\\n")
`;

const baselineTimeoutMs = 60_000;
const lookMs = 200;
/** A program that ignores SIGTERM is killed after this time, ms. */
const stopTimeoutMs = 10_000;

interface ShownWorkload {
  id: string;
  state?: string;
}

/**
 * Starts a training job by `wsk gpu workload run` with its figures, and resolves once its baseline is measured, for which no
 * function may run.
 */
export async function startTraining(
  { api }: Pick<LivePlatform, 'api'>,
  cleanup: Cleanup,
  { model, batch, hostMs, bound, smUtil, log }: TrainingPlan,
): Promise<Training> {
  const connection = ['--apihost', api.baseUrl, '--auth', guestKey];
  const flags = ['--name', `${model}-training`, '--degradation', String(bound)];
  const cuda = join(repositoryDir, 'runtimes', 'cuda');
  const command = ['python3', '-B', '-c', program, cuda, log, model, String(batch), String(hostMs)];
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('GPUWHISK_'));
  const child = spawn(
    process.execPath,
    [join(repositoryDir, 'bin', 'wsk'), ...connection, 'gpu', 'workload', 'run', ...flags, '--', ...command],
    { env: Object.fromEntries(inherited), stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const ended = once(child, 'exit');
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
    await ended;
    clearTimeout(timer);
  };
  cleanup.add('training', stop);
  const untilMs = performance.now() + baselineTimeoutMs;
  for (let isDeclared = false; performance.now() < untilMs; await sleep(lookMs)) {
    if (child.exitCode !== null) throw new Error(`the training has ended with ${child.exitCode}`);
    const [workload] = (await api.json('GET', '/api/v1/gpu/workloads')) as ShownWorkload[];
    if (workload === undefined) continue;
    const path = `/api/v1/gpu/workloads/${workload.id}`;
    // Answered 409 if the registration is changed meanwhile, by `wsk` or by a report.
    isDeclared ||= (await api.send('PUT', path, JSON.stringify({ features: { smUtil } }))).status === 200;
    if (!isDeclared || workload.state !== 'within-bound') continue;
    const stepEnds = async (): Promise<number[]> => {
      const lines = (await readFile(log, 'utf8')).split('\n');
      return lines.slice(0, -1).map(Number);
    };
    const setBound = (maxDegradation: number): Promise<void> =>
      api.json('PUT', path, { maxDegradation }).then(() => undefined);
    return { setBound, stepEnds, stop };
  }
  throw new Error(`the training has no measured baseline after ${baselineTimeoutMs} ms`);
}
