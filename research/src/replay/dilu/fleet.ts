// An account of devices of the bench's own, for rules that are compared with the platform's.
import { thousandths } from '@gpuwhisk/gpu/ledger/occupancy';
import type { PackedInstance } from './instances.js';

/** What an instance takes of a device: thousandths of the SMs, MiB. */
export interface Part {
  device: PackedDevice;
  request: number;
  limit: number;
  memoryMiB: number;
}

/** A device with its instances. */
export interface PackedDevice {
  id: number;
  node: number;
  request: number;
  limit: number;
  memoryMiB: number;
  instances: Map<string, PackedInstance>;
}

/** Devices that are alike. */
export interface FleetShape {
  nodes: number;
  perNode: number;
  /** Of each device. */
  memoryMiB: number;
}

/** How much devices give to instances together, in thousandths of their SMs. */
export interface Bounds {
  omega: number;
  gamma: number;
}

/** The bounds as thousandths. */
export function boundsOf({ omega, gamma }: Bounds): Bounds {
  return { omega: thousandths(omega), gamma: thousandths(gamma) };
}

/** A rule that says where an instance goes; it changes nothing. Undefined: nowhere. */
export type PackingRule = (fleet: Fleet, instance: PackedInstance) => Part[] | undefined;

/** The devices of a cluster, and where instances are. */
export class Fleet {
  readonly devices: readonly PackedDevice[];
  /** Devices with an instance, in the order in which they were opened. */
  readonly active = new Set<PackedDevice>();
  /** The others: those that were never opened, then those that were closed, the first of them first. */
  readonly closed: Set<PackedDevice>;
  /** Devices with an instance of each function. */
  private readonly byFunction = new Map<string, Set<PackedDevice>>();
  private readonly parts = new Map<string, Part[]>();

  constructor(readonly shape: FleetShape) {
    this.devices = Array.from({ length: shape.nodes * shape.perNode }, (_, id) => ({
      ...{ id, node: Math.floor(id / shape.perNode), request: 0, limit: 0, memoryMiB: 0 },
      instances: new Map(),
    }));
    this.closed = new Set(this.devices);
  }

  /** Where an instance is. */
  partsOf({ id }: PackedInstance): readonly Part[] {
    return this.parts.get(id) ?? [];
  }

  /** The devices with an instance of a function. */
  with(name: string): ReadonlySet<PackedDevice> {
    return this.byFunction.get(name) ?? new Set();
  }

  /** Whether a device has so much memory left. */
  hasMemory({ memoryMiB }: PackedDevice, needMiB: number): boolean {
    return memoryMiB + needMiB <= this.shape.memoryMiB;
  }

  hold(instance: PackedInstance, parts: Part[]): void {
    this.parts.set(instance.id, parts);
    const theirs = this.byFunction.get(instance.function) ?? new Set();
    this.byFunction.set(instance.function, theirs);
    for (const { device, request, limit, memoryMiB } of parts) {
      device.request += request;
      device.limit += limit;
      device.memoryMiB += memoryMiB;
      device.instances.set(instance.id, instance);
      theirs.add(device);
      this.active.add(device);
      this.closed.delete(device);
    }
  }

  release(instance: PackedInstance): void {
    for (const { device, request, limit, memoryMiB } of this.partsOf(instance)) {
      device.request -= request;
      device.limit -= limit;
      device.memoryMiB -= memoryMiB;
      device.instances.delete(instance.id);
      const others = [...device.instances.values()];
      if (!others.some((one) => one.function === instance.function)) {
        this.byFunction.get(instance.function)?.delete(device);
      }
      if (device.instances.size > 0) continue;
      this.active.delete(device);
      this.closed.add(device);
    }
    this.parts.delete(instance.id);
  }
}
