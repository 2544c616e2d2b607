import type { Device, GpuProcess, Slice } from '@gpuwhisk/common/gpu';

/** A device's figures at one moment. Fractions are 0–1; absent where the chip or the mode does not tell. */
export interface DeviceSample {
  uuid: string;
  usedMemoryMiB: number;
  utilisation?: number;
  smActivity?: number;
  dramActivity?: number;
  temperatureC?: number;
  powerW?: number;
  /** Reasons for lowered clocks, in words. */
  clockEvents: string[];
  processes: Pick<GpuProcess, 'pid' | 'memoryMiB' | 'utilisation' | 'slice'>[];
}

/** Something that happened to a device. */
export type DeviceEvent =
  | { type: 'xid'; device: string; code: number }
  | { type: 'ecc'; device: string }
  | { type: 'mig-changed'; device: string }
  | { type: 'lost'; device: string };

/** A way to cut a MIG GPU, as the driver's live table has it. */
export interface SliceProfile {
  /** `3g.20gb`. */
  name: string;
  slots: number;
  smCount: number;
  memoryMiB: number;
  /** Slots at which an instance may begin. */
  starts: number[];
  /** Instances of it that the free slots still take. */
  remaining: number;
}

/** The driver answered with an error or not in time; `code` is its own where it gave one. */
export class GpuDriverError extends Error {
  override name = 'GpuDriverError';
  constructor(
    message: string,
    readonly code?: number,
  ) {
    super(message);
  }
}

/** The GPUs of one machine. Everything rejects with GpuDriverError; nothing blocks the event loop. */
export interface GpuDriver {
  readonly simulated: boolean;
  /** The driver's version and the CUDA version that it serves, `13.0`. */
  readonly version: { driver: string; cuda: string };
  /** `mode` is never `mps`: the driver does not know who enforces shares. A lost device is not listed. */
  devices(): Promise<Device[]>;
  /** All devices at once: what the agent does every second. A lost device is left out. */
  sample(): Promise<DeviceSample[]>;
  /** Calls `listener`, which must not throw, for every event from now on. */
  watch(listener: (event: DeviceEvent) => void): Promise<{ close(): Promise<void> }>;
  /** The profiles of a device that can be cut; empty where it cannot. */
  sliceProfiles(device: string): Promise<SliceProfile[]>;
  /** Whether only one process (the MPS server, say) may use the device. Allowed where `gpu.manage.mps` is. */
  setExclusive(device: string, exclusive: boolean): Promise<void>;
  /** Refused while processes use the device; it takes the device's slices with it. Allowed where `gpu.manage.mig` is. */
  setMig(device: string, enabled: boolean): Promise<void>;
  /** Where the driver finds room, or at `startSlot`. Several of one device: in the order of inOrderOfCreation. */
  createSlice(device: string, profile: string, startSlot?: number): Promise<Slice>;
  /** Refused while processes use the slice. */
  destroySlice(device: string, slice: string): Promise<void>;
  close(): Promise<void>;
}
