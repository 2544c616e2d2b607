import { keepNewest, withoutUndefined } from '@gpuwhisk/common/collections';
import type { NodeStatus, Resident } from '@gpuwhisk/common/gpu';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { GpuTable } from './gpu-table.js';

/** Time between two samples of a device, s. */
const sampleS = 5;
/** Samples of a device: ten minutes. */
const maxSamples = 120;
/** Instances of a device that are remembered. */
const maxInstances = 64;
/** Devices that are remembered. */
const maxDevices = 10_000;

/** The use of a device at one time. Utilisation is absent where the chip does not tell. */
export interface DeviceSample {
  /** Epoch ms. */
  at: number;
  usedMemoryMiB: number;
  /** Fraction of the time, 0–1. */
  utilisation?: number;
}

/** An instance that is or was on a device. */
export interface PastInstance extends Pick<Resident, 'container' | 'action' | 'namespace' | 'slice' | 'memoryMiB'> {
  /** Limit as a fraction of the SMs, 0–1. */
  smLimit: number;
  /** Epoch ms; `until` is absent while it is there. */
  from: number;
  until?: number;
}

interface Kept {
  samples: DeviceSample[];
  instances: Map<string, PastInstance>;
}

/** What was on each device in the last ten minutes, from the rows that this controller has seen. */
export class DeviceHistory {
  private readonly devices = new Map<string, Kept>();
  /** By node, the second of the last row that was looked at. */
  private readonly lookedS = new Map<string, number>();

  constructor(
    table: Pick<GpuTable, 'onRow' | 'onGone'>,
    private readonly clock: Pick<Clock, 'now'>,
  ) {
    table.onRow((node) => this.observe(node));
    table.onGone((invoker) => this.lookedS.delete(invoker));
  }

  /** The history of a device: samples and instances, oldest first; both are empty for an unknown device. */
  of(device: string): { samples: readonly DeviceSample[]; instances: readonly PastInstance[] } {
    const kept = this.devices.get(device);
    if (kept === undefined) return { samples: [], instances: [] };
    const sinceMs = this.clock.now() - sampleS * maxSamples * 1000;
    return {
      samples: kept.samples.filter(({ at }) => at >= sinceMs),
      instances: [...kept.instances.values()].filter(({ until }) => until === undefined || until >= sinceMs),
    };
  }

  /** Looks at a row, once a second for each node. */
  private observe({ invoker, devices, status, residents }: NodeStatus): void {
    const now = this.clock.now();
    const second = Math.floor(now / 1000);
    if (this.lookedS.get(invoker) === second) return;
    this.lookedS.set(invoker, second);
    for (const { uuid, usedMemoryMiB, utilisation } of status) {
      const { samples } = this.keptOf(uuid);
      const last = samples.at(-1);
      if (last !== undefined && Math.floor(last.at / 1000 / sampleS) === Math.floor(second / sampleS)) continue;
      samples.push({ at: now, usedMemoryMiB, ...(utilisation !== undefined && { utilisation }) });
      if (samples.length > maxSamples) samples.shift();
    }
    const here = new Map(devices.map(({ uuid }) => [uuid, new Set<string>()]));
    for (const resident of residents) {
      here.get(resident.device)?.add(resident.container);
      this.note(resident, now);
    }
    for (const [uuid, containers] of here) this.endOthers(uuid, containers, now);
  }

  private keptOf(device: string): Kept {
    const known = this.devices.get(device);
    if (known !== undefined) return known;
    const kept: Kept = { samples: [], instances: new Map() };
    keepNewest(this.devices, device, kept, maxDevices);
    return kept;
  }

  private note(resident: Resident, now: number): void {
    const { container, device, action, namespace, slice, memoryMiB, since = now, share } = resident;
    const { instances } = this.keptOf(device);
    const known = instances.get(container);
    if (known !== undefined) {
      // A pre-warmed process has no action until it gets one, and shares move.
      if (action !== undefined) known.action = action;
      if (namespace !== undefined) known.namespace = namespace;
      known.smLimit = share.smLimit;
      known.memoryMiB = memoryMiB;
      delete known.until;
      return;
    }
    const { smLimit } = share;
    instances.set(
      container,
      withoutUndefined({ container, action, namespace, slice, memoryMiB, smLimit, from: since }),
    );
    if (instances.size <= maxInstances) return;
    const ended = [...instances.values()].find(({ until }) => until !== undefined);
    const [oldest] = instances.keys();
    instances.delete(ended?.container ?? oldest ?? '');
  }

  private endOthers(device: string, containers: ReadonlySet<string>, now: number): void {
    for (const one of this.devices.get(device)?.instances.values() ?? []) {
      if (one.until === undefined && !containers.has(one.container)) one.until = now;
    }
  }
}
