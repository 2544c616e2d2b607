import { gpuMemoryBound } from '@gpuwhisk/common/gpu';
import type { Device } from '@gpuwhisk/common/gpu';
import type { GpuGrant } from '../containers/container-factory.js';
import { placesOf } from '../pool/memory-budget.js';
import type { DeviceBudget } from '../pool/memory-budget.js';

/** The memory of every device and slice: what containers claim of it, and what others hold. All in MiB. */
export class DeviceLedger implements DeviceBudget {
  private readonly capacities = new Map<string, number>();
  private readonly claims = new Map<string, number>();
  private foreign: ReadonlyMap<string, number> = new Map();

  /** Sets what there is to give; claims stay, also those of what is gone. */
  setDevices(devices: readonly Device[]): void {
    this.capacities.clear();
    for (const device of devices) {
      for (const { uuid, memoryMiB } of device.mode === 'mig' ? device.slices : [device]) {
        this.capacities.set(uuid, Math.floor(memoryMiB * gpuMemoryBound));
      }
    }
  }

  /** Sets what processes hold that are none of ours, by device or slice. */
  setForeign(foreign: ReadonlyMap<string, number>): void {
    this.foreign = foreign;
  }

  /** What can be given away of a device or slice, whoever has it now; undefined if there is none. */
  capacityMiB(place: string): number | undefined {
    const capacity = this.capacities.get(place);
    return capacity === undefined ? undefined : capacity - (this.foreign.get(place) ?? 0);
  }

  claim(grant: GpuGrant): boolean {
    const { memoryMiB } = grant.share;
    const places = placesOf(grant);
    if (places.some((place) => this.missingMiB(place, memoryMiB) > 0)) return false;
    for (const place of places) this.claims.set(place, (this.claims.get(place) ?? 0) + memoryMiB);
    return true;
  }

  release(grant: GpuGrant): void {
    for (const place of placesOf(grant)) {
      const left = (this.claims.get(place) ?? 0) - grant.share.memoryMiB;
      if (left > 0) this.claims.set(place, left);
      else this.claims.delete(place);
    }
  }

  missingMiB(place: string, memoryMiB: number): number {
    const capacity = this.capacityMiB(place);
    return capacity === undefined ? 0 : (this.claims.get(place) ?? 0) + memoryMiB - capacity;
  }
}
