import type { Device, DeviceStatus, GpuNeed, GpuProcess, NodeStatus } from '@gpuwhisk/common/gpu';
import { gpuTypeOf } from '@gpuwhisk/gpu/share/quotas';
import type { WorkloadFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { FunctionProfiles } from '@gpuwhisk/gpu/profile/function-profiles';

/**
 * Learns from an agent's look what functions' processes take of their GPUs: of the SMs by process, of memory bandwidth
 * where a process is the only one that computes, as drivers tell that by device. Of the cache no driver tells.
 */
export function learnFromLook(profiles: FunctionProfiles, { devices, residents, status }: NodeStatus): void {
  const actions = new Map(residents.map(({ container, action }) => [container, action]));
  for (const look of status) {
    const device = devices.find(({ uuid }) => uuid === look.uuid);
    const busy = look.processes.filter(({ utilisation = 0 }) => utilisation > 0);
    for (const process of device === undefined ? [] : busy) {
      const action = actions.get(process.container ?? '');
      if (action === undefined) continue;
      const dramUtil = busy.length === 1 ? (look.dramActivity ?? 0) : 0;
      const gpu = { type: typeOf(device!, process), mode: device!.mode };
      profiles.seen(action, gpu, { smUtil: process.utilisation ?? 0, dramUtil, l2Util: 0 });
    }
  }
}

/** What a function uses: as its processes were seen to, and what the driver does not tell as its owner has it. */
export function featuresOf(
  seen: WorkloadFeatures | undefined,
  declared?: GpuNeed['features'],
): WorkloadFeatures | undefined {
  // The same object each time: predictions are remembered by it.
  if (declared === undefined) return seen !== undefined && seen.smUtil > 0 ? seen : undefined;
  const use = (name: keyof WorkloadFeatures): number => seen?.[name] || (declared[name] ?? 0);
  const features = { smUtil: use('smUtil'), dramUtil: use('dramUtil'), l2Util: use('l2Util') };
  return features.smUtil > 0 ? features : undefined;
}

/** The types that a device's places have. */
export function typesOf(device: Device): string[] {
  return device.slices.length > 0 ? device.slices.map((slice) => gpuTypeOf(device, slice)) : [gpuTypeOf(device)];
}

function typeOf(device: Device, { slice: uuid }: GpuProcess): string {
  return gpuTypeOf(
    device,
    device.slices.find((slice) => slice.uuid === uuid),
  );
}

/** Whether processes use a device that are none of the platform's. */
export function hasStrangers(status: DeviceStatus | undefined): boolean {
  return status?.processes.some(({ container }) => container === undefined) ?? false;
}
