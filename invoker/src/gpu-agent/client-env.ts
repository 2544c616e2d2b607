import type { Device, Share } from '@gpuwhisk/common/gpu';
import type { GpuAccess } from '../containers/runtime-launch.js';
import type { ShareEnforcer } from './enforcers/share-enforcer.js';

/**
 * By device: environment that makes a process of the node's own a client of its MPS server, with the whole device; none
 * where it is cut into slices or is not shared so.
 */
export async function clientEnvs(
  devices: readonly Device[],
  enforcer: ShareEnforcer,
  access: (device: string) => GpuAccess,
  /** What is known by now: it does not change as long as this process lives. */
  known: Record<string, Record<string, string>> = {},
): Promise<Record<string, Record<string, string>>> {
  const envs: Record<string, Record<string, string>> = {};
  for (const device of devices.filter(({ mode }) => mode === 'mps')) {
    const found = known[device.uuid];
    if (found !== undefined) {
      envs[device.uuid] = found;
      continue;
    }
    const whole: Share = { shareClass: 100, smRequest: 1, smLimit: 1, memoryMiB: device.memoryMiB };
    const { env } = await enforcer.settings(device, whole);
    const { env: own, libraries } = access(device.uuid);
    const search: Record<string, string> = libraries.length === 0 ? {} : { LD_LIBRARY_PATH: libraries.join(':') };
    envs[device.uuid] = { ...own, ...search, CUDA_VISIBLE_DEVICES: device.uuid, ...env };
  }
  return envs;
}
