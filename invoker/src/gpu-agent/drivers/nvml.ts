import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Slice } from '@gpuwhisk/common/gpu';
import { builtPath } from '../../host/programs.js';
import type { DeviceEvent, DeviceSample, SliceProfile } from './gpu-driver.js';

/** A loaded library as the addon holds it. */
export type NvmlSession = object;

export interface NvmlDevice {
  uuid: string;
  index: number;
  name: string;
  smCount: number;
  memoryMiB: number;
  /** MIG mode is on. */
  mig: boolean;
  /** Its compute mode lets only one process in. */
  exclusive: boolean;
  slices: Slice[];
}

/**
 * native/nvml. A rejection is an Error with NVML's number as its `code`. One call at a time: each takes a thread of Node's
 * pool until the driver answers.
 */
export interface Nvml {
  /** `path` as dlopen takes it; `simulator`: the socket of the stand-in's daemon, empty for a real driver. */
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

/** NVML's numbers that callers tell apart. */
export const nvmlCodes = { noPermission: 4, notFound: 6, inUse: 19, insufficientResources: 23 } as const;

/** Folder of the stand-in's libraries and programs. */
export const standInFolder = builtPath('cudasim');

/** Loads the addon; undefined where it was not built (no C++ compiler, or not Linux). */
export function loadNvml(): Nvml | undefined {
  const path = builtPath('nvml.node');
  if (!existsSync(path)) return undefined;
  return createRequire(import.meta.url)(path) as Nvml;
}
