import type { Device, DeviceHealth, DeviceStatus, GpuProcess } from '@gpuwhisk/common/gpu';
import type { DeviceSample } from './drivers/gpu-driver.js';

/** What the figures of a moment mean for the GPU table. */
export interface SampleView {
  devices: readonly Device[];
  /** The container that a process of the host is in; undefined: it is none of ours. */
  containerOf(pid: number): string | undefined;
  healthOf(device: string): DeviceHealth;
  /** What a context takes of a device, MiB; undefined: not measured yet. */
  contextMiB(device: string): number | undefined;
  /** Epoch ms. */
  at: number;
}

/** The status of every device; one that was not sampled keeps nothing but its health. */
export function deviceStatuses(samples: readonly DeviceSample[], view: SampleView): DeviceStatus[] {
  const byUuid = new Map(samples.map((sample) => [sample.uuid, sample]));
  return view.devices.map(({ uuid }) => {
    const health = view.healthOf(uuid);
    const sample = byUuid.get(uuid);
    if (sample === undefined) return { uuid, at: view.at, usedMemoryMiB: 0, health, processes: [] };
    const { usedMemoryMiB, utilisation, smActivity, dramActivity, temperatureC, powerW } = sample;
    const contextMiB = view.contextMiB(uuid);
    const told = { utilisation, smActivity, dramActivity, temperatureC, powerW, contextMiB };
    const figures = Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined));
    const processes = sample.processes.map((process) => owned(process, view));
    return { uuid, at: view.at, usedMemoryMiB, ...figures, health, processes };
  });
}

function owned(process: DeviceSample['processes'][number], view: SampleView): GpuProcess {
  const container = view.containerOf(process.pid);
  return container === undefined ? { ...process } : { ...process, container };
}

/** What processes that are none of ours hold, by device or slice, MiB. */
export function foreignMemory(statuses: readonly DeviceStatus[]): Map<string, number> {
  const foreign = new Map<string, number>();
  for (const { uuid, processes } of statuses) {
    for (const { container, slice = uuid, memoryMiB } of processes) {
      if (container === undefined) foreign.set(slice, (foreign.get(slice) ?? 0) + memoryMiB);
    }
  }
  return foreign;
}

/** What each container holds, by device or slice, MiB. */
export function containerMemory(statuses: readonly DeviceStatus[]): Map<string, Map<string, number>> {
  const held = new Map<string, Map<string, number>>();
  for (const { uuid, processes } of statuses) {
    for (const { container, slice = uuid, memoryMiB } of processes) {
      if (container === undefined) continue;
      const own = held.get(container) ?? new Map<string, number>();
      held.set(container, own.set(slice, (own.get(slice) ?? 0) + memoryMiB));
    }
  }
  return held;
}
