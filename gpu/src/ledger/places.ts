import { gpuMemoryBound, kindName, mpsClientLimit, sliceClientLimit } from '@gpuwhisk/common/gpu';
import type { Device, DeviceStatus, GpuKind, NodeStatus, Slice } from '@gpuwhisk/common/gpu';

/** A device, or a slice of one: the unit that clients are placed on. */
export interface Place {
  node: NodeStatus;
  device: Device;
  slice: Slice | undefined;
  status: DeviceStatus | undefined;
  /** Memory that may be given away in all, MiB. */
  capacityMiB: number;
}

/** The name of a place in decisions: a UUID. */
export function placeId({ device, slice }: Pick<Place, 'device' | 'slice'>): string {
  return slice?.uuid ?? device.uuid;
}

/** Most clients that an MPS server takes on a place; Infinity where none serves it. */
export function clientLimitOf({ device, slice }: Pick<Place, 'device' | 'slice'>): number {
  if (slice !== undefined) return sliceClientLimit(slice, device);
  return device.mode === 'mps' ? mpsClientLimit : Infinity;
}

/** What models and tables call a GPU, or an instance of one: instances of one profile are GPUs of a type of their own. */
export function gpuTypeOf(device: { type: string }, slice?: { profile: string }): string {
  return slice === undefined || slice.profile === '' ? device.type : `${device.type}:${slice.profile}`;
}

/** The kind of GPU that a place is. */
export function kindOf({ device, slice }: Pick<Place, 'device' | 'slice'>): GpuKind {
  return { gpuType: gpuTypeOf(device, slice), mode: device.mode };
}

/** The kinds of GPU that places are of, each once. */
export function kindsOf(places: Iterable<{ place: Place }>): GpuKind[] {
  const kinds = new Map<string, GpuKind>();
  for (const { place } of places) {
    const kind = kindOf(place);
    const name = kindName(kind);
    if (!kinds.has(name)) kinds.set(name, kind);
  }
  return [...kinds.values()];
}

const uncut = [undefined] as const;

/** Every device that is not cut, and every slice of those that are. */
export function placesOf(nodes: readonly NodeStatus[]): Place[] {
  const places: Place[] = [];
  for (const node of nodes) {
    for (const [at, device] of node.devices.entries()) {
      const { uuid, mode } = device;
      // Agents tell both in one order.
      const told = node.status[at];
      const status = told?.uuid === uuid ? told : node.status.find((one) => one.uuid === uuid);
      for (const slice of mode === 'mig' ? device.slices : uncut) {
        places.push({ node, device, slice, status, capacityMiB: usableMiB(slice ?? device) });
      }
    }
  }
  return places;
}

/** Memory that may be given away, MiB; 0 where it is not known, so that nothing fits. */
export function usableMiB({ memoryMiB }: { memoryMiB: number }): number {
  return Number.isFinite(memoryMiB) ? Math.floor(memoryMiB * gpuMemoryBound) : 0;
}

/** The least memory of a device of which `usable` MiB may be given away, MiB. */
export function memoryGiving(usable: number): number {
  const least = Math.ceil(Math.floor(usable) / gpuMemoryBound);
  return usableMiB({ memoryMiB: least }) < Math.floor(usable) ? least + 1 : least;
}

/** Devices of one type and mode on one node serve a function that needs several. */
export function gangKey({ node, device }: Pick<Place, 'node' | 'device'>): string {
  return `${node.invoker} ${device.type} ${device.mode}`;
}
