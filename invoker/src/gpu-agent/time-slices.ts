// Devices that go over from MPS to time slices and back, as the deciding controller wants it.
import type { Device, DeviceStatus } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import { sharingChanges } from './device-faults.js';
import type { ShareEnforcer } from './enforcers/share-enforcer.js';
import { isEmptied } from './foreign-work.js';
import type { GpuContainers } from './gpu-containers.js';
import type { Healer } from './healer.js';
import type { Inventory } from './inventory.js';

/** Dependencies of TimeSlices. */
interface TimeSlicesParts {
  enforcer: Pick<ShareEnforcer, 'sharing' | 'giveUp' | 'reconsider'>;
  inventory: Pick<Inventory, 'devices' | 'healthOf' | 'record' | 'setTrouble'>;
  gpuContainers: GpuContainers;
  healer: Pick<Healer, 'end'>;
  logger: Logger;
  /** Reads the devices and their modes again. */
  refresh(): Promise<void>;
}

/** A device is emptied only if all that runs there ends within this time by its own limit, ms. */
const maxEmptyingMs = 300_000;
/** Looks after a failed change until it is tried again. */
const pauseLooks = 60;
const why = 'several namespaces, which may not share an MPS server, use it';

/** Empties devices and changes how they are shared. Devices where the platform has not chosen MPS by itself stay as they are. */
export class TimeSlices {
  private wanted: ReadonlySet<string> = new Set();
  /** Devices in time slices because that was wanted. */
  private readonly sliced = new Set<string>();
  /** Looks that are left out after a failed change, by device. */
  private readonly paused = new Map<string, number>();
  /** Changes that are under way, by device. A start of MPS takes seconds. */
  private readonly changes = new Map<string, Promise<void>>();

  constructor(private readonly parts: TimeSlicesParts) {}

  /** Sets the devices that are to be in time slices. */
  set(devices: readonly string[]): void {
    this.wanted = new Set(devices);
  }

  /** Begins, goes on with or ends changes. */
  look(statuses: readonly DeviceStatus[]): void {
    const { enforcer, inventory, gpuContainers, healer } = this.parts;
    for (const device of inventory.devices) {
      const { uuid } = device;
      const paused = this.paused.get(uuid) ?? 0;
      if (paused > 0) this.paused.set(uuid, paused - 1);
      if (this.changes.has(uuid) || paused > 0) continue;
      const isWanted = this.wanted.has(uuid);
      const mayChange = this.sliced.has(uuid) || enforcer.sharing?.(uuid)?.mayGiveUp === true;
      if (isWanted === this.sliced.has(uuid) || !mayChange || device.slices.length > 0) {
        inventory.setTrouble(uuid, sharingChanges, false);
        continue;
      }
      const isBegun = inventory.record(uuid).troubles.includes(sharingChanges);
      if (!isBegun && !this.mayEmpty(uuid, statuses)) continue;
      inventory.setTrouble(uuid, sharingChanges, true);
      if (gpuContainers.awaited(uuid, '').length > 0 || !isEmptied(uuid, gpuContainers, healer)) continue;
      const change = this.change(device, isWanted).finally(() => this.changes.delete(uuid));
      this.changes.set(uuid, change);
    }
  }

  /** The device as the node's row shows it: whether it may return to MPS. */
  mark(device: Device): Device {
    return this.sliced.has(device.uuid) ? { ...device, returnsToMps: true } : device;
  }

  /** Resolves when no change is under way. */
  async settled(): Promise<void> {
    await Promise.all(this.changes.values());
  }

  /** Whether a device is healthy, and empty soon. */
  private mayEmpty(device: string, statuses: readonly DeviceStatus[]): boolean {
    const { inventory, gpuContainers } = this.parts;
    if (inventory.healthOf(device).state !== 'healthy') return false;
    const processes = statuses.find(({ uuid }) => uuid === device)?.processes ?? [];
    // Workloads are clients of its MPS server.
    if (processes.some(({ workload }) => workload !== undefined)) return false;
    const running = gpuContainers.on(device).flatMap(({ users }) => [...users.values()]);
    const coming = gpuContainers.awaited(device, '').map(({ user }) => user);
    return [...running, ...coming].every(({ timeLimitMs = Infinity }) => timeLimitMs <= maxEmptyingMs);
  }

  /** Changes an empty device. Never rejects: what fails is tried again after `pauseLooks`, and it takes work meanwhile. */
  private async change({ uuid }: Device, toSlices: boolean): Promise<void> {
    const { enforcer, inventory, logger, refresh } = this.parts;
    try {
      if (toSlices) {
        await enforcer.giveUp?.(uuid, `MPS was ended, since ${why}`);
        this.sliced.add(uuid);
      } else {
        enforcer.reconsider?.(uuid);
        this.sliced.delete(uuid);
      }
      await refresh();
      const { isShared = false, how } = enforcer.sharing?.(uuid) ?? {};
      logger.info({ device: uuid, isShared, how }, 'the way in which functions share a GPU was changed');
    } catch (error) {
      logger.warn(
        { device: uuid, error: String(error) },
        'the way in which functions share a GPU could not be changed',
      );
      this.paused.set(uuid, pauseLooks);
    } finally {
      inventory.setTrouble(uuid, sharingChanges, false);
    }
  }
}
