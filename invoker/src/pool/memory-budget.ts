import type { ContainerSpec, GpuGrant } from '../containers/container-factory.js';

/** The memory of GPUs that containers claim by their specs. */
export interface DeviceBudget {
  /** Takes what a container is granted, on all of its devices or none, if it is free. What is gone has no bound: making a container on it says why not. */
  claim(grant: GpuGrant): boolean;
  release(grant: GpuGrant): void;
  /** Memory of a device or slice that is missing for another container, MiB; 0 or less: none. */
  missingMiB(place: string, memoryMiB: number): number;
}

/** What of a container's memory counts, MiB. */
export type Measure = (spec: ContainerSpec) => number;

/** The devices, or the slice, that have the memory of a grant: each of them all of it. */
export function placesOf({ devices, slice }: Pick<GpuGrant, 'devices' | 'slice'>): readonly string[] {
  return slice === undefined ? devices : [slice];
}

/** The memory of a container on a device or slice, MiB. */
export function deviceMemoryOn(place: string, { gpu }: ContainerSpec): number {
  return gpu !== undefined && placesOf(gpu).includes(place) ? gpu.share.memoryMiB : 0;
}

/** The device memory of a container where it lies in a place of `spec`, MiB; else 0. */
export function deviceMemoryBeside({ gpu }: ContainerSpec, other: ContainerSpec): number {
  return Math.max(0, ...(gpu === undefined ? [] : placesOf(gpu)).map((place) => deviceMemoryOn(place, other)));
}

/** The memory that containers claim by their specs, within bounds: the host's, and that of GPUs. */
export class MemoryBudget {
  /** The host's memory that is claimed now, MiB. */
  claimedMiB = 0;
  /** The part of it whose containers are being destroyed, MiB. */
  private releasingMiB = 0;
  /** The same of GPUs, by place. */
  private readonly releasingOn = new Map<string, number>();

  constructor(
    private readonly limitMiB: number,
    /** Undefined: what GPUs have is not bounded here. */
    private readonly devices: DeviceBudget | undefined,
    /** Called when memory has become free. */
    private readonly freed: () => void,
  ) {}

  /** Takes a container's memory if it is free. */
  claim({ memoryMiB, gpu }: ContainerSpec): boolean {
    if (this.claimedMiB + memoryMiB > this.limitMiB) return false;
    if (gpu !== undefined && this.devices?.claim(gpu) === false) return false;
    this.claimedMiB += memoryMiB;
    return true;
  }

  release({ memoryMiB, gpu }: ContainerSpec): void {
    this.claimedMiB -= memoryMiB;
    if (gpu !== undefined) this.devices?.release(gpu);
    this.freed();
  }

  /** A container is on its way out. */
  leaving(spec: ContainerSpec): void {
    this.addReleasing(spec, 1);
  }

  /** A container that was on its way out is gone. */
  left(spec: ContainerSpec): void {
    this.addReleasing(spec, -1);
    this.release(spec);
  }

  /** What of the host has to be freed for a container beyond what is on its way, MiB; 0 or less: nothing. */
  missingMiB({ memoryMiB }: ContainerSpec): number {
    return this.claimedMiB + memoryMiB - this.limitMiB - this.releasingMiB;
  }

  /** The same of its GPUs: the devices or slices that lack some. */
  lackingPlaces({ gpu }: ContainerSpec): { place: string; missingMiB: number }[] {
    const { devices } = this;
    if (gpu === undefined || devices === undefined) return [];
    return placesOf(gpu)
      .map((place) => {
        const missingMiB = devices.missingMiB(place, gpu.share.memoryMiB) - (this.releasingOn.get(place) ?? 0);
        return { place, missingMiB };
      })
      .filter(({ missingMiB }) => missingMiB > 0);
  }

  /** Whether the end of a container would give another one memory that it lacks. */
  helps(leaving: ContainerSpec, wanted: ContainerSpec): boolean {
    const lacking = this.lackingPlaces(wanted);
    return lacking.length === 0 || lacking.some(({ place }) => deviceMemoryOn(place, leaving) > 0);
  }

  /** Whether what is on its way is enough for a container. */
  isComing({ memoryMiB, gpu }: ContainerSpec): boolean {
    const places = gpu === undefined ? [] : placesOf(gpu);
    const onDevices = places.every((place) => (this.releasingOn.get(place) ?? 0) >= (gpu?.share.memoryMiB ?? 0));
    return this.releasingMiB >= memoryMiB && onDevices;
  }

  private addReleasing({ memoryMiB, gpu }: ContainerSpec, sign: 1 | -1): void {
    this.releasingMiB += sign * memoryMiB;
    if (gpu === undefined) return;
    for (const place of placesOf(gpu)) {
      const releasing = (this.releasingOn.get(place) ?? 0) + sign * gpu.share.memoryMiB;
      if (releasing > 0) this.releasingOn.set(place, releasing);
      else this.releasingOn.delete(place);
    }
  }
}
