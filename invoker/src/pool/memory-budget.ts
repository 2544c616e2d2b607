import type { ContainerSpec, GpuGrant } from '../containers/container-factory.js';

/** The memory of GPUs that containers claim by their specs. */
export interface DeviceBudget {
  /**
   * Claims a grant's memory on all of its devices, or on none if it is not free. Missing places have no bound: making the
   * container there fails with the reason.
   */
  claim(grant: GpuGrant): boolean;
  release(grant: GpuGrant): void;
  /** Memory that a device or slice lacks for another container, MiB; 0 or less if there is enough. */
  missingMiB(place: string, memoryMiB: number): number;
}

/** The part of a container's memory that counts, MiB. */
export type Measure = (spec: ContainerSpec) => number;

/** The devices or the slice of a grant. */
export function placesOf({ devices, slice }: Pick<GpuGrant, 'devices' | 'slice'>): readonly string[] {
  return slice === undefined ? devices : [slice];
}

/** The memory of a grant on one of its places, MiB. */
export function grantedMiB({ devices, share, partsMiB }: GpuGrant, place: string): number {
  return partsMiB?.[devices.indexOf(place)] ?? share.memoryMiB;
}

/** The memory of a container on a device or slice, MiB. */
export function deviceMemoryOn(place: string, { gpu }: ContainerSpec): number {
  return gpu !== undefined && placesOf(gpu).includes(place) ? grantedMiB(gpu, place) : 0;
}

/** The device memory of a container if it shares a place with `other`, MiB; else 0. */
export function deviceMemoryBeside({ gpu }: ContainerSpec, other: ContainerSpec): number {
  return Math.max(0, ...(gpu === undefined ? [] : placesOf(gpu)).map((place) => deviceMemoryOn(place, other)));
}

/** Bounded memory of the host and of GPUs that containers claim by their specs. */
export class MemoryBudget {
  /** Claimed memory of the host, MiB. */
  claimedMiB = 0;
  /** The part of `claimedMiB` whose containers are being destroyed. */
  private releasingMiB = 0;
  /** Claimed memory of GPUs whose containers are being destroyed, by place, MiB. */
  private readonly releasingOn = new Map<string, number>();

  constructor(
    private readonly limitMiB: number,
    /** Memory of GPUs; undefined for no bound. */
    private readonly devices: DeviceBudget | undefined,
    /** Called when memory has become free. */
    private readonly freed: () => void,
  ) {}

  /** Claims a container's memory if it is free; whether it was. */
  claim({ memoryMiB, gpu }: ContainerSpec): boolean {
    if (this.claimedMiB + memoryMiB > this.limitMiB) return false;
    if (gpu !== undefined && this.devices?.claim(gpu) === false) return false;
    this.claimedMiB += memoryMiB;
    return true;
  }

  /** Changes the claim of a container's memory of the host from one size to another; whether there was memory for it. */
  change(fromMiB: number, toMiB: number): boolean {
    if (!this.canChange(fromMiB, toMiB)) return false;
    this.claimedMiB += toMiB - fromMiB;
    return true;
  }

  canChange(fromMiB: number, toMiB: number): boolean {
    return toMiB <= fromMiB || this.claimedMiB + toMiB - fromMiB <= this.limitMiB;
  }

  release({ memoryMiB, gpu }: ContainerSpec): void {
    this.claimedMiB -= memoryMiB;
    if (gpu !== undefined) this.devices?.release(gpu);
    this.freed();
  }

  /** Notes that a container is being destroyed. */
  leaving(spec: ContainerSpec): void {
    this.addReleasing(spec, 1);
  }

  /** Notes that a container that was being destroyed has ended. */
  left(spec: ContainerSpec): void {
    this.addReleasing(spec, -1);
    this.release(spec);
  }

  /**
   * Memory of the host to free for a container besides that of containers being destroyed, MiB; 0 or less if there is
   * enough.
   */
  missingMiB({ memoryMiB }: ContainerSpec): number {
    return this.claimedMiB + memoryMiB - this.limitMiB - this.releasingMiB;
  }

  /** The devices or slices that lack memory for a container, with the missing memory as in missingMiB. */
  lackingPlaces({ gpu }: ContainerSpec): { place: string; missingMiB: number }[] {
    const { devices } = this;
    if (gpu === undefined || devices === undefined) return [];
    return placesOf(gpu)
      .map((place) => {
        const missingMiB = devices.missingMiB(place, grantedMiB(gpu, place)) - (this.releasingOn.get(place) ?? 0);
        return { place, missingMiB };
      })
      .filter(({ missingMiB }) => missingMiB > 0);
  }

  /** Whether the end of one container would free memory that another one lacks. */
  helps(leaving: ContainerSpec, wanted: ContainerSpec): boolean {
    const lacking = this.lackingPlaces(wanted);
    return lacking.length === 0 || lacking.some(({ place }) => deviceMemoryOn(place, leaving) > 0);
  }

  /** Whether free memory and that of containers being destroyed is enough for a container. */
  isComing({ memoryMiB, gpu }: ContainerSpec): boolean {
    const onDevices =
      gpu === undefined || placesOf(gpu).every((place) => (this.releasingOn.get(place) ?? 0) >= grantedMiB(gpu, place));
    return this.releasingMiB >= memoryMiB && onDevices;
  }

  private addReleasing({ memoryMiB, gpu }: ContainerSpec, sign: 1 | -1): void {
    this.releasingMiB += sign * memoryMiB;
    if (gpu === undefined) return;
    for (const place of placesOf(gpu)) {
      const releasing = (this.releasingOn.get(place) ?? 0) + sign * grantedMiB(gpu, place);
      if (releasing > 0) this.releasingOn.set(place, releasing);
      else this.releasingOn.delete(place);
    }
  }
}
