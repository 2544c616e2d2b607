import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Slice } from '@gpuwhisk/common/gpu';
import { builtPath } from '../../host/native-programs.js';
import type { DeviceEvent, DeviceSample, SliceProfile } from './gpu-driver.js';

/** The addon's handle of a loaded library. */
export type NvmlSession = object;

export interface NvmlDevice {
  uuid: string;
  index: number;
  name: string;
  smCount: number;
  memoryMiB: number;
  /** Whether MIG mode is on. */
  mig: boolean;
  /** Whether the compute mode admits only one process. */
  exclusive: boolean;
  slices: Slice[];
}

/**
 * The addon native/nvml. A rejection is an Error with NVML's number as its `code`. Callers make one call at a time: each
 * occupies a thread of Node's pool until the driver answers.
 */
export interface Nvml {
  /**
   * Loads the library at `path`, in dlopen's notation. `simulator`: socket of the stand-in's daemon, empty for a real
   * driver.
   */
  open(path: string, simulator: string): Promise<{ session: NvmlSession; driver: string; cuda: string }>;
  devices(session: NvmlSession): Promise<NvmlDevice[]>;
  sample(session: NvmlSession): Promise<DeviceSample[]>;
  profiles(session: NvmlSession, device: string): Promise<SliceProfile[]>;
  setMig(session: NvmlSession, device: string, enabled: boolean): Promise<void>;
  setExclusive(session: NvmlSession, device: string, exclusive: boolean): Promise<void>;
  createSlice(session: NvmlSession, device: string, profile: string, startSlot?: number): Promise<Slice>;
  destroySlice(session: NvmlSession, device: string, slice: string): Promise<void>;
  watch(session: NvmlSession, listener: (event: DeviceEvent) => void): Promise<object>;
  unwatch(session: NvmlSession, watch: object): Promise<void>;
  close(session: NvmlSession): Promise<void>;
}

/** NVML's error numbers that callers distinguish. */
export const nvmlCodes = { noPermission: 4, notFound: 6, inUse: 19, insufficientResources: 23 } as const;

/** Folder of the stand-in's libraries and programs. */
export const standInFolder = builtPath('cudasim');

/** Loads the addon; undefined if it was not built (no C++ compiler, or not Linux). */
export function loadNvml(): Nvml | undefined {
  const path = builtPath('nvml.node');
  if (!existsSync(path)) return undefined;
  return createRequire(import.meta.url)(path) as Nvml;
}
