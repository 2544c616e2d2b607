import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { BenchContext } from '../bench.js';
import { repositoryDir } from '../paths.js';

const folder = join(repositoryDir, 'native/build/cudasim');
const answerWithinMs = 120_000;

/** A program on the stand-in's driver; native/cudasim/examples/client.c says what it can be told. */
export interface SimulatedClient {
  /** The numbers of its answer after the CUresult. Rejects where that is none of `results`. */
  tell(command: string, results?: readonly number[]): Promise<number[]>;
  end(): Promise<void>;
}

/** A device of the stand-in, an A100 of 40 GB, with an MPS daemon. */
export interface SimulatedDevice {
  /** A process; with a share, in percent, it is a client of MPS. */
  start(share?: number): SimulatedClient;
}

async function endOf(child: ChildProcess): Promise<void> {
  child.stdin?.end();
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

/** Starts a program of the stand-in; resolves once it says that it is ready. */
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

/** Starts the daemon, and MPS on its device. Throws where the stand-in was not built. */
export async function startDevice(context: BenchContext): Promise<SimulatedDevice> {
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
