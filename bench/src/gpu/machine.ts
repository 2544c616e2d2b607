import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Cleanup } from '../cleanup.js';
import { repositoryDir } from '../machine.js';
import { startGpuWorker, type GpuWorker } from './gpu-worker.js';

const native = join(repositoryDir, 'native/build');
const standIn = join(native, 'cudasim');
const commandTimeoutMs = 20_000;
/** The share that a test client asks for, to check that MPS is in force. */
const probePercent = 50;

/** The measured device, and a way to start processes on it. */
export interface GpuMachine {
  device: string;
  sms: number;
  memoryMiB: number;
  simulated: boolean;
  /** Whether MPS limits shares; if not, mpsProblem gives the reason. */
  mps: boolean;
  mpsProblem?: string;
  /** Variables of the MPS daemon's clients; absent without MPS. */
  mpsEnv?: NodeJS.ProcessEnv;
  env: NodeJS.ProcessEnv;
  /** Starts a process; with MPS, as a client with at most `percent` of the SMs. `more` adds to its environment. */
  start(kind: 'driver' | 'torch', percent: number, more?: NodeJS.ProcessEnv): Promise<GpuWorker>;
}

const torchProgram = join(repositoryDir, 'bench/gpu/torch_worker.py');
const commands = { driver: [join(native, 'gpu-bench')], torch: ['python3', torchProgram] } as const;

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
  const base = simulated ? { ...own, ...(await startStandIn(temporaryDir, seed, cleanup)) } : own;
  const alone = await startGpuWorker(commands.driver, base);
  await alone.check().finally(() => alone.end());
  const { device, sms, memoryMiB } = alone;
  let mps: NodeJS.ProcessEnv | undefined;
  let mpsProblem: string | undefined;
  const start: GpuMachine['start'] = (kind, percent, more) =>
    startGpuWorker(commands[kind], {
      ...base,
      ...mps,
      ...(mps && { CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: String(percent) }),
      ...more,
    });
  try {
    mps = await startMps(base, temporaryDir, cleanup);
    // A client that finds no daemon silently gets the whole device.
    const half = await start('driver', probePercent);
    await half.end();
    if (half.sms >= sms) throw new Error(`a client of ${probePercent} % has ${half.sms} of ${sms} SMs`);
  } catch (error) {
    mps = undefined;
    mpsProblem = (error as Error).message;
  }
  return {
    device,
    sms,
    memoryMiB,
    simulated,
    start,
    env: base,
    mps: mps !== undefined,
    ...(mps && { mpsEnv: mps }),
    ...(mpsProblem !== undefined && { mpsProblem }),
  };
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
 * Opens the driver's management library through native/nvml; it has GPM's figures from Hopper on. `simulator` is the
 * stand-in's socket, or empty. Rejects if there is no such library.
 */
export async function openActivity(simulator: string): Promise<ActivityMeter> {
  const addon = join(repositoryDir, 'native/build/nvml.node');
  if (!existsSync(addon)) throw new Error('native/nvml was not built.');
  const nvml = createRequire(import.meta.url)(addon) as Nvml;
  const library = simulator === '' ? '' : join(repositoryDir, 'native/build/cudasim/');
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
