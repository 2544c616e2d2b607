import type { Device, GpuProcess, Slice } from '@gpuwhisk/common/gpu';

/** A device's figures at one moment. Fractions are 0–1; figures that the chip or the mode lacks are absent. */
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

/** An event of a device. */
export type DeviceEvent =
  | { type: 'xid'; device: string; code: number }
  | { type: 'ecc'; device: string }
  | { type: 'mig-changed'; device: string }
  | { type: 'lost'; device: string };

/** A profile of MIG slices, from the driver's live table. */
export interface SliceProfile {
  /** Such as `3g.20gb`. */
  name: string;
  slots: number;
  smCount: number;
  memoryMiB: number;
  /** Slots at which an instance may begin. */
  starts: number[];
  /** Number of instances that still fit into the free slots. */
  remaining: number;
}

/** The driver answered with an error or not in time; `code` is the driver's, if it gave one. */
export class GpuDriverError extends Error {
  override name = 'GpuDriverError';
  constructor(
    message: string,
    readonly code?: number,
  ) {
    super(message);
  }
}

/** The GPUs of one machine. All methods reject with GpuDriverError; none blocks the event loop. */
export interface GpuDriver {
  readonly simulated: boolean;
  /** Whether devices may be cut: they are simulated, or `gpu.manage.mig` is on. */
  readonly cuts: boolean;
  /** The driver's version, and the CUDA version that the driver supports, such as `13.0`. */
  readonly version: { driver: string; cuda: string };
  /** `mode` is never `mps`: the driver does not know who enforces shares. A lost device is not listed. */
  devices(): Promise<Device[]>;
  /** Figures of all devices; the agent calls this every second. A lost device is left out. */
  sample(): Promise<DeviceSample[]>;
  /** Calls `listener`, which must not throw, for every event from now on. */
  watch(listener: (event: DeviceEvent) => void): Promise<{ close(): Promise<void> }>;
  /** The profiles of a device; empty if the device cannot be cut. */
  sliceProfiles(device: string): Promise<SliceProfile[]>;
  /** Sets whether only one process, such as the MPS server, may use the device. Needs `gpu.manage.mps`. */
  setExclusive(device: string, exclusive: boolean): Promise<void>;
  /**
   * Turns MIG on or off, which removes the device's slices. Refused while processes use the device. Needs `gpu.manage.mig`.
   */
  setMig(device: string, enabled: boolean): Promise<void>;
  /**
   * Makes a slice at `startSlot`, or at a place of the driver's choice. Callers make several in the order of
   * inOrderOfCreation.
   */
  createSlice(device: string, profile: string, startSlot?: number): Promise<Slice>;
  /** Removes a slice. Refused while processes use the slice. */
  destroySlice(device: string, slice: string): Promise<void>;
  close(): Promise<void>;
}
