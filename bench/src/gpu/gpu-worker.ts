import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

const startTimeoutMs = 180_000; // Long enough for loading PyTorch.
const answerTimeoutMs = 180_000;
const endTimeoutMs = 10_000;

/** Times of a workload's iterations. */
export interface Times {
  iterations: number;
  medianMs: number;
  p95Ms: number;
  p99Ms: number;
  meanMs: number;
  /** Iterations a second: of training, steps. */
  perS: number;
}

/** A process of the benchmark: native/gpu-bench/worker.c, or bench/gpu/torch_worker.py. */
export interface GpuWorker {
  pid: number;
  /** SMs that the process sees: those of its percentage under MPS. */
  sms: number;
  memoryMiB: number;
  device: string;
  /** Loads a workload in place of the last one. Rejects with the driver's error if it cannot. */
  load(workload: string): Promise<void>;
  /** Frees the memory of the workload. */
  unload(): Promise<void>;
  run(seconds: number): Promise<Times>;
  check(): Promise<void>;
  end(): Promise<void>;
}

/** Thrown if a workload could not be loaded or run; the process continues. */
export class WorkerError extends Error {
  override name = 'WorkerError';
}

/**
 * Starts a process and waits until it has its device. Rejects with WorkerError if there is none. The process is killed
 * when `signal` is aborted; what was asked of it then rejects with WorkerError.
 */
export async function startGpuWorker(
  command: readonly string[],
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<GpuWorker> {
  const [program = '', ...args] = command;
  if (signal?.aborted) throw new WorkerError(`There is no time left to start ${program}.`);
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'], env });
  const kill = (): void => void child.kill('SIGKILL');
  signal?.addEventListener('abort', kill);
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
    child.once('error', () => resolve());
  }).finally(() => signal?.removeEventListener('abort', kill));
  // A failed write means that the process has ended; the missing answer reports it.
  child.stdin.on('error', () => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async (timeoutMs: number): Promise<string> => {
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    try {
      const { value, done } = await lines.next();
      if (done) throw new WorkerError(`${program} has ended.`);
      return value;
    } finally {
      clearTimeout(timer);
    }
  };
  const ask = async (line: string): Promise<string> => {
    child.stdin.write(`${line}\n`);
    const said = await answer(answerTimeoutMs);
    if (!said.startsWith('ok')) throw new WorkerError(said.replace(/^error /, ''));
    return said;
  };
  const end = async (): Promise<void> => {
    child.stdin.end();
    const timer = setTimeout(() => child.kill('SIGKILL'), endTimeoutMs);
    await ended;
    clearTimeout(timer);
  };
  let ready;
  try {
    if (child.pid === undefined) await once(child, 'error').then(([error]) => Promise.reject(error));
    const said = await answer(startTimeoutMs);
    ready = /^ready (\d+) (\d+) (.*)$/.exec(said);
    if (ready === null) throw new WorkerError(said.replace(/^error /, ''));
  } catch (error) {
    await end();
    throw error;
  }
  const [, sms, memoryMiB, device = ''] = ready;
  return {
    pid: child.pid as number,
    sms: Number(sms),
    memoryMiB: Number(memoryMiB),
    device,
    async load(workload) {
      await ask(`load ${workload}`);
    },
    async unload() {
      await ask('unload');
    },
    async run(seconds) {
      const said = await ask(`run ${seconds}`);
      const [iterations = NaN, medianMs = NaN, p95Ms = NaN, meanMs = NaN, p99Ms = NaN] = said
        .split(' ')
        .slice(1)
        .map(Number);
      const times = { iterations, medianMs, p95Ms, p99Ms, meanMs, perS: 1000 / meanMs };
      if (!Object.values(times).every(Number.isFinite)) throw new WorkerError(`no times in its answer '${said}'`);
      return times;
    },
    async check() {
      await ask('check');
    },
    end,
  };
}
