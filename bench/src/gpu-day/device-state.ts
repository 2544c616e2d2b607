import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const timeoutMs = 10_000;
/** Memory, MiB, by which an idle device's use may differ between two looks. */
const memoryToleranceMiB = 64;

/** A device's name, its driver, and its settings and use, as nvidia-smi shows them. */
export interface DeviceState {
  name: string;
  driver: string;
  /** Compute mode, MIG mode and persistence mode by their names. */
  settings: Record<string, string>;
  usedMiB: number;
}

/** The first device's state. Rejects if there is no device or no nvidia-smi. */
export async function readDeviceState(): Promise<DeviceState> {
  const names = ['name', 'driver_version', 'compute_mode', 'mig.mode.current', 'persistence_mode', 'memory.used'];
  const args = [`--query-gpu=${names.join(',')}`, '--format=csv,noheader,nounits', '--id=0'];
  const { stdout } = await promisify(execFile)('nvidia-smi', args, { timeout: timeoutMs });
  const [name, driver, computeMode, migMode, persistenceMode, used] = stdout.trim().split(/\s*,\s*/);
  if (name === undefined || driver === undefined) throw new Error(`nvidia-smi said: ${stdout.trim()}`);
  const settings = {
    'compute mode': computeMode ?? '',
    'MIG mode': migMode ?? '',
    'persistence mode': persistenceMode ?? '',
  };
  return { name, driver, settings, usedMiB: Number(used) };
}

/** Differences of a device's state after a run, in words; empty if it is as before. */
export function changesOf(before: DeviceState, after: DeviceState): string[] {
  const changed = Object.entries(before.settings).flatMap(([name, value]) =>
    after.settings[name] === value ? [] : [`the ${name} of the device is ${after.settings[name]}, and was ${value}`],
  );
  if (after.usedMiB <= before.usedMiB + memoryToleranceMiB) return changed;
  return [...changed, `${after.usedMiB} MiB of the device are used, and were ${before.usedMiB}`];
}
