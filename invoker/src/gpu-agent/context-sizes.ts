import type { Device } from '@gpuwhisk/common/gpu';

/**
 * What a CUDA context takes of a device, as measured on the processes that idle before their first function: the least that
 * one of them holds. It goes by the driver, the type of the device and how that is shared, since an MPS client's is smaller.
 */
export class ContextSizes {
  private readonly keys = new Map<string, string>();
  private readonly sizes = new Map<string, number>();

  constructor(private readonly driver: string) {}

  setDevices(devices: readonly Device[]): void {
    for (const { uuid, type, mode } of devices) this.keys.set(uuid, `${this.driver} ${type} ${mode}`);
  }

  /** A process that has run no function yet holds so much, MiB. */
  note(device: string, heldMiB: number): void {
    const key = this.keys.get(device);
    if (key === undefined || heldMiB <= 0) return;
    this.sizes.set(key, Math.min(heldMiB, this.sizes.get(key) ?? Infinity));
  }

  /** MiB; undefined: none was measured yet. */
  of(device: string): number | undefined {
    return this.sizes.get(this.keys.get(device) ?? '');
  }
}
