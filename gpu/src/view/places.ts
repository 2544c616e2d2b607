import { gpuMemoryBound } from '@gpuwhisk/common/gpu';
import { holdsToShares } from './shares.js';
import type { Device, DeviceStatus, GpuNeed, NodeStatus, Slice } from '@gpuwhisk/common/gpu';

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

/** What models and tables call a GPU, or an instance of one: instances of one profile are GPUs of a type of their own. */
export function gpuTypeOf(device: { type: string }, slice?: { profile: string }): string {
  return slice === undefined || slice.profile === '' ? device.type : `${device.type}:${slice.profile}`;
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
        const { memoryMiB } = slice ?? device;
        // Where it is not known nothing fits.
        const capacityMiB = Number.isFinite(memoryMiB) ? Math.floor(memoryMiB * gpuMemoryBound) : 0;
        places.push({ node, device, slice, status, capacityMiB });
      }
    }
  }
  return places;
}

/** Devices of one type and mode on one node serve a function that needs several. */
export function gangKey({ node, device }: Pick<Place, 'node' | 'device'>): string {
  return `${node.invoker} ${device.type} ${device.mode}`;
}

/** Why no device that is known can ever serve such a function, whatever runs there; undefined if one can. */
export function capacityProblem(
  nodes: readonly NodeStatus[],
  { memoryMiB, gpus, maxShareClass }: Pick<GpuNeed, 'memoryMiB' | 'gpus' | 'maxShareClass'>,
): string | undefined {
  const places = placesOf(nodes).filter(({ device }) => maxShareClass === undefined || holdsToShares(device.mode));
  const [largest] = [...places].sort((one, other) => other.capacityMiB - one.capacityMiB);
  if (largest === undefined) {
    return maxShareClass === undefined
      ? 'no device can be used'
      : `the namespace may have ${maxShareClass} % of a device, and none holds functions to a share`;
  }
  if (largest.capacityMiB < memoryMiB) {
    const name =
      largest.slice === undefined ? largest.device.name : `${largest.slice.profile} of ${largest.device.name}`;
    return `'memoryMiB' is ${memoryMiB}, and the largest device, ${name}, can give ${largest.capacityMiB}`;
  }
  if (gpus === 1) return undefined;
  const gangs = new Map<string, number>();
  for (const place of places) {
    if (place.device.mode === 'mig' || place.capacityMiB < memoryMiB) continue;
    gangs.set(gangKey(place), (gangs.get(gangKey(place)) ?? 0) + 1);
  }
  const most = Math.max(0, ...gangs.values());
  return most >= gpus
    ? undefined
    : `'gpus' is ${gpus}, and no node has more than ${most} alike with so much memory that are not cut into slices`;
}
