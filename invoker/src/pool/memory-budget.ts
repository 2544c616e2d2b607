import type { ContainerSpec, GpuGrant } from '../containers/container-factory.js';

/** The memory of GPUs that containers claim by their specs. */
export interface DeviceBudget {
  /** Takes what a container is granted if it is free. What is gone has no bound: making a container on it says why not. */
  claim(grant: GpuGrant): boolean;
  release(grant: GpuGrant): void;
  /** Memory of the device or slice that is missing for another container, MiB; 0 or less: none. */
  missingMiB(grant: GpuGrant): number;
}

/** What of a container's memory counts, MiB. */
export type Measure = (spec: ContainerSpec) => number;

/** Where the memory of a grant lies. */
export const placeOf = ({ device, slice }: Pick<GpuGrant, 'device' | 'slice'>): string => slice ?? device;

/** The device memory of a container where it lies in the same place as that of `spec`, MiB; else 0. */
export function deviceMemoryBeside({ gpu }: ContainerSpec, { gpu: other }: ContainerSpec): number {
  if (gpu === undefined || other === undefined || placeOf(gpu) !== placeOf(other)) return 0;
  return other.share.memoryMiB;
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

  /** The same of its GPU. */
  missingOnDeviceMiB({ gpu }: ContainerSpec): number {
    if (gpu === undefined || this.devices === undefined) return 0;
    return this.devices.missingMiB(gpu) - (this.releasingOn.get(placeOf(gpu)) ?? 0);
  }

  /** Whether the end of a container would give another one memory that it lacks. */
  helps(leaving: ContainerSpec, wanted: ContainerSpec): boolean {
    return this.missingOnDeviceMiB(wanted) <= 0 || deviceMemoryBeside(wanted, leaving) > 0;
  }

  /** Whether what is on its way is enough for a container. */
  isComing({ memoryMiB, gpu }: ContainerSpec): boolean {
    const ofDevice = gpu === undefined || (this.releasingOn.get(placeOf(gpu)) ?? 0) >= gpu.share.memoryMiB;
    return this.releasingMiB >= memoryMiB && ofDevice;
  }

  private addReleasing({ memoryMiB, gpu }: ContainerSpec, sign: 1 | -1): void {
    this.releasingMiB += sign * memoryMiB;
    if (gpu === undefined) return;
    const place = placeOf(gpu);
    const releasing = (this.releasingOn.get(place) ?? 0) + sign * gpu.share.memoryMiB;
    if (releasing > 0) this.releasingOn.set(place, releasing);
    else this.releasingOn.delete(place);
  }
}
