import { gpuMemoryBound } from '@gpuwhisk/common/gpu';
import type { Device, DeviceHealth } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import type { GpuGrant } from '../containers/container-factory.js';
import { grantedMiB, placesOf } from '../pool/memory-budget.js';
import type { DeviceBudget } from '../pool/memory-budget.js';
import { healthOf, healthyRecord, sharingFails, sharingMissing } from './device-faults.js';
import type { HealthRecord } from './device-faults.js';
import type { GpuDriver } from './drivers/gpu-driver.js';
import type { ShareEnforcer } from './enforcers/share-enforcer.js';

/** A device, or a slice of it, that processes run on under one enforcer. */
export interface Place {
  device: Device;
  slice?: string;
}

/** The announced end of a node. */
interface Leaving {
  /** In words, for an operator. */
  why: string;
  /** Longest time limit of a run that still ends in time, ms; 0: none does. */
  longestRunMs(): number;
}

/** The devices of the node, their sharing and their health. */
export class Inventory {
  devices: readonly Device[] = [];
  private readonly records = new Map<string, HealthRecord>();
  /** Why the node leaves; undefined: it stays. */
  private leaving: Leaving | undefined;

  constructor(
    private readonly driver: GpuDriver,
    private readonly enforcer: ShareEnforcer,
    private readonly ledger: DeviceLedger,
    private readonly logger: Logger,
  ) {}

  /** Whether shares of a device are enforced as far as is known. */
  isShared(uuid: string): boolean {
    const { troubles } = this.record(uuid);
    if (this.enforcer.sharing?.(uuid)?.isShared === false) return false;
    return !troubles.includes(sharingFails) && !troubles.includes(sharingMissing);
  }

  /** Reads all devices and prepares them for sharing. The health record of a missing device is kept. */
  async refresh(): Promise<void> {
    const found = await this.driver.devices();
    const gone = this.devices.filter(({ uuid }) => !found.some((one) => one.uuid === uuid));
    for (const { uuid } of gone) this.lose(uuid, 'the driver does not list it any more');
    const readied = await Promise.all(found.map((device) => this.ready(device)));
    this.devices = [...readied, ...gone];
    this.ledger.setDevices(readied);
  }

  /** The places for work: every device that is not cut, and every slice. */
  places(): Place[] {
    return this.devices.flatMap((device) =>
      device.mode === 'mig' ? device.slices.map(({ uuid }) => ({ device, slice: uuid })) : [{ device }],
    );
  }

  find(uuid: string): Device | undefined {
    return this.devices.find((device) => device.uuid === uuid);
  }

  record(uuid: string): HealthRecord {
    return this.records.get(uuid) ?? healthyRecord;
  }

  setRecord(uuid: string, record: HealthRecord): void {
    const before = this.healthOf(uuid);
    this.records.set(uuid, record);
    const { state, reasons } = this.healthOf(uuid);
    if (before.state !== state) this.logger.warn({ device: uuid, state, reasons }, 'a GPU changed its state');
  }

  healthOf(uuid: string): DeviceHealth {
    const health = healthOf(this.record(uuid));
    if (this.leaving === undefined) return health;
    const { state } = health;
    const reasons = [...health.reasons, this.leaving.why];
    const longestRunMs = this.leaving.longestRunMs();
    if (state === 'healthy' && longestRunMs > 0) return { state: 'leaving', reasons, longestRunMs };
    return { state: state === 'offline' ? state : 'draining', reasons };
  }

  /** Has the node leave, or stay: devices take runs that end in time, and drain once there is no such time. */
  setLeaving(leaving: Leaving | undefined): void {
    this.leaving = leaving;
  }

  isLost(uuid: string): boolean {
    return this.record(uuid).lost !== undefined;
  }

  lose(uuid: string, why: string): void {
    this.setRecord(uuid, { ...this.record(uuid), lost: this.record(uuid).lost ?? why });
  }

  /** Adds or removes a trouble of a device. */
  setTrouble(uuid: string, trouble: string, is: boolean): void {
    const record = this.record(uuid);
    if (record.troubles.includes(trouble) === is) return;
    const others = record.troubles.filter((one) => one !== trouble);
    this.setRecord(uuid, { ...record, troubles: is ? [...others, trouble] : others });
  }

  /** Opens a place at the enforcer again. Rejects with ShareError. */
  reopen({ device, slice }: Place): Promise<void> {
    return this.enforcer.open(device, slice);
  }

  /** The device with its sharing mode: processes take turns if MPS is not available. */
  private async ready(device: Device): Promise<Device> {
    if (!this.enforcer.name.includes('mps')) return device;
    try {
      if (device.mode === 'mig') for (const { uuid } of device.slices) await this.enforcer.open(device, uuid);
      else await this.enforcer.open(device);
      this.setTrouble(device.uuid, sharingMissing, false);
    } catch (error) {
      // An exclusive device admits one process, which has the whole device without MPS; with MPS this process is the server.
      if (device.mode === 'exclusive') return device;
      this.logger.error({ device: device.uuid, error: String(error) }, 'a GPU cannot be shared');
      this.setTrouble(device.uuid, sharingMissing, true);
      return device;
    }
    const isShared = this.enforcer.sharing?.(device.uuid)?.isShared !== false;
    return device.mode === 'mig' || !isShared ? device : { ...device, mode: 'mps' };
  }
}

/** The memory of every device and slice, with containers' claims and the memory of other processes, MiB. */
export class DeviceLedger implements DeviceBudget {
  private readonly capacities = new Map<string, number>();
  private readonly claims = new Map<string, number>();
  private foreign: ReadonlyMap<string, number> = new Map();

  /** Sets the devices and slices; claims stay, also those on missing ones. */
  setDevices(devices: readonly Device[]): void {
    this.capacities.clear();
    for (const device of devices) {
      for (const { uuid, memoryMiB } of device.mode === 'mig' ? device.slices : [device]) {
        this.capacities.set(uuid, Math.floor(memoryMiB * gpuMemoryBound));
      }
    }
  }

  /** Sets the memory held by other processes than the platform's, by device or slice. */
  setForeign(foreign: ReadonlyMap<string, number>): void {
    this.foreign = foreign;
  }

  /** Memory of a device or slice that containers may claim in total; undefined if there is no such place. */
  capacityMiB(place: string): number | undefined {
    const capacity = this.capacities.get(place);
    return capacity === undefined ? undefined : capacity - (this.foreign.get(place) ?? 0);
  }

  claim(grant: GpuGrant): boolean {
    const places = placesOf(grant);
    if (places.some((place) => this.missingMiB(place, grantedMiB(grant, place)) > 0)) return false;
    for (const place of places) this.claims.set(place, (this.claims.get(place) ?? 0) + grantedMiB(grant, place));
    return true;
  }

  release(grant: GpuGrant): void {
    for (const place of placesOf(grant)) {
      const left = (this.claims.get(place) ?? 0) - grantedMiB(grant, place);
      if (left > 0) this.claims.set(place, left);
      else this.claims.delete(place);
    }
  }

  missingMiB(place: string, memoryMiB: number): number {
    const capacity = this.capacityMiB(place);
    return capacity === undefined ? 0 : (this.claims.get(place) ?? 0) + memoryMiB - capacity;
  }
}
