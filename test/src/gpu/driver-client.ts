import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { runProgram } from '@gpuwhisk/invoker/host/programs';
import { standIn } from './stand-in.js';

const answerWithinMs = 60_000;
const endWithinMs = 20_000;

/** Variables by which a process of the stand-in finds its driver and its daemon. */
const environmentFor = (socket: string, env: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv => ({
  ...process.env,
  GPUWHISK_SIM_SOCKET: socket,
  LD_LIBRARY_PATH: standIn.folder,
  ...env,
});

/** A running program on the driver API; native/cudasim/examples/client.c lists its commands. */
export interface DriverClient {
  pid: number;
  /**
   * Sends a command and resolves with the numbers and words of the answer; the first is a CUresult. Rejects if none
   * comes.
   */
  tell(command: string): Promise<string[]>;
  end(): Promise<void>;
}

/** Starts a client; `env` has CUDA_VISIBLE_DEVICES and the variables of MPS. */
export function startDriverClient(socket: string, env: Readonly<Record<string, string>> = {}): DriverClient {
  return startToldProgram(join(standIn.folder, 'client'), socket, env);
}

/** Starts another program that answers each line of its input with one line. */
export function startToldProgram(path: string, socket: string, env: Readonly<Record<string, string>>): DriverClient {
  const child = spawn(path, [], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: environmentFor(socket, env),
  });
  const ended = once(child, 'exit');
  // A program that answers without input may end before its first input: its answer counts.
  child.stdin.on('error', () => undefined);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    pid: child.pid as number,
    async tell(command) {
      let timer: NodeJS.Timeout | undefined;
      child.stdin.write(`${command}\n`);
      const late = new Promise<never>((_resolve, reject) => {
        timer = setTimeout(() => reject(new Error(`No answer to ${command}.`)), answerWithinMs);
      });
      const { value, done } = await Promise.race([lines.next(), late]);
      clearTimeout(timer);
      if (done) throw new Error(`The client ended at ${command}.`);
      return value.split(' ');
    },
    async end() {
      child.stdin.end();
      const timer = setTimeout(() => child.kill('SIGKILL'), endWithinMs);
      await ended;
      clearTimeout(timer);
    },
  };
}

/** Runs a command of native/cudasim/control and returns its output. Rejects with that output if it fails. */
export async function controlStandIn(socket: string, ...args: (string | number)[]): Promise<string> {
  const options = { timeoutMs: 20_000, env: environmentFor(socket) };
  return runProgram(join(standIn.folder, 'control'), args.map(String), options);
}

/** An MPS daemon for a device; its clients use this pipe directory. */
export interface MpsDaemon {
  env: { CUDA_MPS_PIPE_DIRECTORY: string };
  end(): Promise<void>;
}

/** Starts a daemon in `directory`; its limits for all clients may be lowered. */
export async function startMps(
  socket: string,
  directory: string,
  { device = 0, percent = 100, limitMiB = 0 } = {},
): Promise<MpsDaemon> {
  const child = spawn(join(standIn.folder, 'control'), ['mps', directory, device, percent, limitMiB].map(String), {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: environmentFor(socket),
  });
  const ended = once(child, 'exit');
  await Promise.race([
    once(child.stdout, 'data'),
    ended.then(() => Promise.reject(new Error('The MPS daemon does not start.'))),
  ]);
  return {
    env: { CUDA_MPS_PIPE_DIRECTORY: directory },
    async end() {
      child.stdin.end();
      await ended;
    },
  };
}
