import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repositoryDir } from '../../machine.js';

const timeoutMs = 10_000;
const control = join(repositoryDir, 'native/build/cudasim/control');

/** Where a device's use is read besides our binding to NVML. */
export interface ReferenceGiven {
  simulated: boolean;
  /** Environment of processes that use the device. */
  env: NodeJS.ProcessEnv;
}

/** A device as another program shows it; fields by the names of our binding. */
export type Reference = Partial<{
  uuid: string;
  name: string;
  memoryMiB: number;
  usedMemoryMiB: number;
  temperatureC: number;
  powerW: number;
  mig: boolean;
  exclusive: boolean;
}>;

interface StandInStatus {
  usedBytes: number;
  processes: { pid: number; usedBytes: number }[];
}

async function standInStatus(env: NodeJS.ProcessEnv): Promise<StandInStatus> {
  const { stdout } = await promisify(execFile)(control, ['status', '0'], { env, timeout: timeoutMs });
  return JSON.parse(stdout) as StandInStatus;
}

async function smi(query: string, ...more: string[]): Promise<string[][]> {
  const args = [query, '--format=csv,noheader,nounits', ...more];
  const { stdout } = await promisify(execFile)('nvidia-smi', args, { timeout: timeoutMs });
  const lines = stdout.split('\n').filter((line) => line.trim() !== '');
  return lines.map((line) => line.split(',').map((field) => field.trim()));
}

/** The first device by nvidia-smi, or by the stand-in's control program. Rejects if that program fails. */
export async function referenceOf({ simulated, env }: ReferenceGiven): Promise<Reference> {
  if (simulated) return { usedMemoryMiB: Math.round((await standInStatus(env)).usedBytes / 2 ** 20) };
  const names = 'uuid,name,memory.total,memory.used,temperature.gpu,power.draw,mig.mode.current,compute_mode';
  const [[uuid, name, total, used, temperature, power, mig, mode] = []] = await smi(`--query-gpu=${names}`, '--id=0');
  if (uuid === undefined || name === undefined) throw new Error('nvidia-smi lists no device.');
  return {
    uuid,
    name,
    memoryMiB: Number(total),
    usedMemoryMiB: Number(used),
    temperatureC: Number(temperature),
    powerW: Number(power),
    mig: mig === 'Enabled',
    exclusive: mode === 'Exclusive_Process',
  };
}

/** Device memory of each process by its pid, MiB, by the same programs. */
export async function referenceProcesses({ simulated, env }: ReferenceGiven): Promise<Map<number, number>> {
  if (simulated) {
    const { processes } = await standInStatus(env);
    return new Map(processes.map(({ pid, usedBytes }) => [pid, usedBytes / 2 ** 20]));
  }
  const rows = await smi('--query-compute-apps=pid,used_memory');
  return new Map(rows.map(([pid, used]) => [Number(pid), Number(used)]));
}
