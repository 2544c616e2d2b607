import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Cleanup } from '../cleanup.js';
import { repositoryDir } from '../machine.js';
import { startGpuWorker, WorkerError, type GpuWorker } from './gpu-worker.js';

const commandTimeoutMs = 20_000;
/** The share that a test client asks for, to check that MPS is in force. */
const probePercent = 50;

/** How processes share the device. */
export type ShareMode = 'mps' | 'timeslice';

/** Where programs are, and what gives them a device. */
export interface GpuHome {
  simulated: boolean;
  /** The folder native/build. */
  native: string;
  /** The interpreter that has PyTorch. */
  python: string;
  env: NodeJS.ProcessEnv;
  /** Variables of a running MPS daemon; undefined: processes take turns. */
  mps: NodeJS.ProcessEnv | undefined;
  /** All processes are killed when it is aborted. */
  signal?: AbortSignal;
}

/** How a process is started. */
interface Start {
  /** Default `mps` if there is MPS. */
  mode?: ShareMode;
  /** At most so many percent of the SMs, under MPS; default 100. */
  percent?: number;
  /** Further variables. */
  more?: NodeJS.ProcessEnv;
}

/** The measured device, and a way to start processes on it. */
export interface GpuMachine {
  device: string;
  sms: number;
  memoryMiB: number;
  simulated: boolean;
  native: string;
  /** Whether MPS limits shares; if not, mpsProblem gives the reason. */
  mps: boolean;
  mpsProblem?: string;
  /** Variables of the MPS daemon's clients; absent without MPS. */
  mpsEnv?: NodeJS.ProcessEnv;
  env: NodeJS.ProcessEnv;
  start(kind: 'driver' | 'torch', how?: Start): Promise<GpuWorker>;
}

const torchProgram = join(repositoryDir, 'bench/gpu/torch_worker.py');
const nativeDir = join(repositoryDir, 'native/build');
const standIn = join(nativeDir, 'cudasim');

async function startStandIn(temporaryDir: string, seed: number, cleanup: Cleanup): Promise<NodeJS.ProcessEnv> {
  if (!existsSync(join(standIn, 'daemon'))) throw new Error('The stand-in driver was not built: no C++ compiler.');
  const socket = join(temporaryDir, 'sim');
  const quick = ['--context-ms', '5', '--module-ms', '0', '--seed', String(seed)];
  const child = spawn(join(standIn, 'daemon'), ['--socket', socket, '--gpus', 'h100', ...quick], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  cleanup.add('stand-in', async () => {
    child.stdin.end();
    await ended;
  });
  await Promise.race([once(child.stdout, 'data'), ended.then(() => Promise.reject(new Error('No stand-in.')))]);
  return {
    GPUWHISK_SIM_SOCKET: socket,
    LD_LIBRARY_PATH: standIn,
    PATH: `${standIn}:${process.env['PATH'] ?? ''}`,
  };
}

/** Starts a control daemon for this run. Rejects if it does not start. */
async function startMps(env: NodeJS.ProcessEnv, temporaryDir: string, cleanup: Cleanup): Promise<NodeJS.ProcessEnv> {
  const own = { CUDA_MPS_PIPE_DIRECTORY: join(temporaryDir, 'mps'), CUDA_MPS_LOG_DIRECTORY: join(temporaryDir, 'log') };
  await Promise.all(Object.values(own).map((path) => mkdir(path, { recursive: true })));
  const options = { env: { ...env, ...own }, timeout: commandTimeoutMs };
  await promisify(execFile)('nvidia-cuda-mps-control', ['-d'], options);
  cleanup.add('MPS', async () => {
    const child = spawn('nvidia-cuda-mps-control', [], { ...options, stdio: ['pipe', 'ignore', 'inherit'] });
    child.stdin.end('quit\n');
    await once(child, 'exit');
  });
  return own;
}

/**
 * The first device that processes of `home` see. Checks that MPS limits shares, if there is MPS. Rejects with WorkerError
 * if there is no device.
 */
export async function machineOf(home: GpuHome): Promise<GpuMachine> {
  const { simulated, native, env, signal } = home;
  const commands = { driver: [join(native, 'gpu-bench')], torch: [home.python, torchProgram] };
  // A process that finds no daemon in the folder takes turns with the others.
  const alone = home.mps === undefined ? {} : { CUDA_MPS_PIPE_DIRECTORY: join(native, 'no-mps') };
  let { mps } = home;
  const start: GpuMachine['start'] = (kind, { mode = 'mps', percent = 100, more } = {}) => {
    const shared = mode === 'mps' && mps !== undefined;
    const limited = shared ? { ...mps, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: String(percent) } : alone;
    return startGpuWorker(commands[kind], { ...env, ...limited, ...more }, signal);
  };
  const whole = await start('driver', { mode: 'timeslice' });
  await whole.check().finally(() => whole.end());
  const { device, sms, memoryMiB } = whole;
  let mpsProblem: string | undefined;
  if (mps !== undefined) {
    try {
      const half = await start('driver', { percent: probePercent });
      await half.end();
      // A client that finds no daemon silently gets the whole device.
      if (half.sms >= sms) mpsProblem = `a client of ${probePercent} % has ${half.sms} of ${sms} SMs`;
    } catch (error) {
      if (!(error instanceof WorkerError)) throw error;
      mpsProblem = error.message;
    }
    if (mpsProblem !== undefined) mps = undefined;
  }
  const found = { device, sms, memoryMiB, simulated, native, start, env, mps: mps !== undefined };
  return { ...found, ...(mps && { mpsEnv: mps }), ...(mpsProblem !== undefined && { mpsProblem }) };
}

/**
 * Finds the first visible device and starts MPS for it if possible. Uses the stand-in if `simulated`, else NVIDIA's
 * driver. Rejects if there is no device.
 */
export async function openMachine(options: {
  simulated: boolean;
  seed: number;
  temporaryDir: string;
  cleanup: Cleanup;
}): Promise<GpuMachine> {
  const { simulated, seed, temporaryDir, cleanup } = options;
  const own = { ...process.env };
  delete own['GPUWHISK_SIM_SOCKET']; // The variable may name another stand-in.
  const env = simulated ? { ...own, ...(await startStandIn(temporaryDir, seed, cleanup)) } : own;
  const home = { simulated, native: nativeDir, python: 'python3', env };
  let mps: NodeJS.ProcessEnv;
  try {
    mps = await startMps(env, temporaryDir, cleanup);
  } catch (error) {
    return { ...(await machineOf({ ...home, mps: undefined })), mpsProblem: (error as Error).message };
  }
  return machineOf({ ...home, mps });
}

/** Whether PyTorch is installed and sees the device. PyTorch does not run on the stand-in. */
export async function hasTorch(machine: GpuMachine, say: (line: string) => void): Promise<boolean> {
  if (machine.simulated) return false;
  try {
    await (await machine.start('torch')).end();
    return true;
  } catch (error) {
    if (!(error instanceof WorkerError)) throw error;
    say(`Without PyTorch: ${error.message}`);
    return false;
  }
}

/** Used fractions of time and bandwidth since the last look; absent if the chip does not report them. */
export interface Activity {
  smActivity?: number;
  dramActivity?: number;
  powerW?: number;
}

/** Measures the activity of the first device. */
export interface ActivityMeter {
  driver: string;
  /** The activity since the last look. */
  look(): Promise<Activity>;
  close(): Promise<void>;
}

interface Nvml {
  open(path: string, simulator: string): Promise<{ session: object; driver: string }>;
  sample(session: object): Promise<Activity[]>;
  close(session: object): Promise<void>;
}

/**
 * Opens the driver's management library through native/nvml; it has GPM's figures from Hopper on. `env` names the stand-in,
 * if there is one. Rejects if there is no such library.
 */
export async function openActivity({ native, env }: Pick<GpuMachine, 'native' | 'env'>): Promise<ActivityMeter> {
  const addon = join(native, 'nvml.node');
  const simulator = env['GPUWHISK_SIM_SOCKET'] ?? '';
  if (!existsSync(addon)) throw new Error('native/nvml was not built.');
  const nvml = createRequire(import.meta.url)(addon) as Nvml;
  const library = simulator === '' ? '' : join(native, 'cudasim/');
  const { session, driver } = await nvml.open(`${library}libnvidia-ml.so.1`, simulator);
  return {
    driver,
    async look() {
      const [first = {}] = await nvml.sample(session);
      const { smActivity, dramActivity, powerW } = first;
      return {
        ...(smActivity !== undefined && { smActivity }),
        ...(dramActivity !== undefined && { dramActivity }),
        ...(powerW !== undefined && { powerW }),
      };
    },
    close: () => nvml.close(session),
  };
}
