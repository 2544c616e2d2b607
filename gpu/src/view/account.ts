import type { DeviceHealth, DeviceMode, GpuIsolation } from '@gpuwhisk/common/gpu';

/** Whose process is on a device, or is to be. */
export interface Tenant {
  /** `/namespace/action` of its code; absent, as the next two, for a pre-warmer that has no action yet. */
  action?: string;
  /** That it runs for. */
  namespace?: string;
  isolation?: GpuIsolation;
  /** Devices that it uses together. */
  gpus: number;
}

/** The sums of one place that fact filters look at. */
export interface Account {
  mode: DeviceMode;
  /** Undefined: the node's agent has told nothing of it. */
  health: DeviceHealth | undefined;
  /** Memory that may be given away in all, MiB. */
  capacityMiB: number;
  /** Memory that is left once all instances that can be removed are gone, MiB. */
  availableMiB: number;
  /** Processes of the platform, idle ones included. */
  clients: number;
  /** Those of them that run something, or that something is on its way to. */
  busy: number;
  /** Processes that are not the platform's. */
  workloads: number;
  /** Whose processes cannot be removed: they run, or their agent has not named them yet. */
  staying: readonly Tenant[];
}

/** What fact filters look at of work. */
export interface Work {
  /** `/namespace/action` of its code, and the namespace that it runs for. */
  action: string;
  namespace: string;
  /** Absent: it may be beside everybody who allows it. */
  isolation?: GpuIsolation;
  /** Devices that it needs, of one node and alike. */
  gpus: number;
  /** Device memory on each of them, MiB; 0 or NaN: not known, so that it takes all that a place has. */
  memoryMiB: number;
  /** It may have no more than a share, so that it runs only where it is held to that. */
  isBounded: boolean;
}

/** What work takes of a place's memory, MiB: all of it where that is not known. */
export function neededMiB(
  { memoryMiB }: Pick<Work, 'memoryMiB'>,
  { capacityMiB }: Pick<Account, 'capacityMiB'>,
): number {
  return memoryMiB > 0 ? memoryMiB : capacityMiB;
}
