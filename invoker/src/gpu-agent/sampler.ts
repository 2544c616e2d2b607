import type { DeviceStatus, GpuProcess, Device, DeviceHealth } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { placesOf } from '../pool/memory-budget.js';
import { checkMemory } from './container-checks.js';
import type { DeviceSample, GpuDriver } from './drivers/gpu-driver.js';
import type { ShareEnforcer } from './enforcers/share-enforcer.js';
import type { GpuContainers } from './gpu-containers.js';
import type { Healer } from './healer.js';
import type { HostProcesses } from './host/host-processes.js';
import type { DeviceLedger, Inventory } from './inventory.js';

/** Dependencies of a Sampler. */
interface SamplerParts {
  driver: GpuDriver;
  enforcer: ShareEnforcer;
  inventory: Inventory;
  gpuContainers: GpuContainers;
  ledger: DeviceLedger;
  healer: Healer;
  contexts: ContextSizes;
  processes: HostProcesses;
  clock: Clock;
  logger: Logger;
  /** Containers that wait for an action. */
  unbound(): ReadonlySet<string>;
}

/** Failed looks in a row before the devices count as out of order. */
const maxFailures = 3;
/** Looks per check of the enforcer, of one place at a time: a check may start programs. */
const askEvery = 5;
/** Looks per check whether processes other than the platform's still exist. */
const checkEvery = 5;

const silent = 'the driver does not answer';
const zombie = 'a process that has ended holds memory of it';

/** Samples the devices and the processes on them. */
export class Sampler {
  private failures = 0;
  private looks = 0;
  private asked = 0;
  private last: DeviceStatus[] = [];
  /** By process id, its container; undefined for processes that are not the platform's. */
  private owners = new Map<number, string | undefined>();
  /** Value of GpuContainers.added when `owners` was determined. */
  private ownersOf = 0;
  private readonly confirmed = new Set<number>();

  constructor(private readonly parts: SamplerParts) {}

  /** One look: returns the status of every device, and starts repairs of faults. Never rejects. */
  async look(): Promise<DeviceStatus[]> {
    const { driver, inventory, contexts } = this.parts;
    let samples: DeviceSample[];
    try {
      samples = await driver.sample();
      this.failures = 0;
    } catch (error) {
      this.failures++;
      if (this.failures === 1) this.parts.logger.warn({ error: String(error) }, 'the GPUs could not be sampled');
      for (const { uuid } of inventory.devices) inventory.setTrouble(uuid, silent, this.failures >= maxFailures);
      return this.last;
    }
    for (const { uuid } of inventory.devices) {
      inventory.setTrouble(uuid, silent, false);
      if (!samples.some((sample) => sample.uuid === uuid)) this.parts.healer.lose(uuid, 'the driver does not list it');
    }
    await this.identify(samples.flatMap(({ processes }) => processes.map(({ pid }) => pid)));
    this.last = deviceStatuses(samples, {
      devices: inventory.devices,
      containerOf: (pid) => this.owners.get(pid),
      healthOf: (device) => inventory.healthOf(device),
      contextMiB: (device) => contexts.of(device),
      at: this.parts.clock.now(),
    });
    this.parts.ledger.setForeign(foreignMemory(this.last));
    this.checkContainers();
    await this.confirm();
    this.looks++;
    if (this.looks % askEvery === 0) await this.checkEnforcer();
    if (this.looks % checkEvery === 0) await this.checkProcesses();
    return this.last;
  }

  /** Finds the containers of new processes, and forgets ended processes. */
  private async identify(pids: readonly number[]): Promise<void> {
    const { processes, gpuContainers } = this.parts;
    const launchers = new Map<number, string>();
    for (const { container } of gpuContainers.all()) {
      if (container.hostPid !== undefined) launchers.set(container.hostPid, container.id);
    }
    // A process that was seen before its container was added has no container yet.
    const isUpToDate = this.ownersOf === gpuContainers.added;
    this.ownersOf = gpuContainers.added;
    const owners = new Map<number, string | undefined>();
    for (const pid of pids) {
      const known = this.owners.get(pid);
      const keeps = known === undefined ? this.owners.has(pid) && isUpToDate : gpuContainers.get(known) !== undefined;
      owners.set(pid, keeps ? known : await processes.containerOf(pid, launchers));
    }
    this.owners = owners;
    for (const pid of this.confirmed) if (!owners.has(pid)) this.confirmed.delete(pid);
  }

  private checkContainers(): void {
    const { gpuContainers, healer, contexts } = this.parts;
    const held = containerMemory(this.last);
    const unbound = this.parts.unbound();
    for (const one of gpuContainers.all()) {
      const now = held.get(one.container.id) ?? new Map<string, number>();
      const [device = ''] = one.grant.devices;
      // Counted at the second sight, because the context may still be growing at the first.
      for (const [place, heldMiB] of one.lastUser === undefined && one.loadedMs === undefined ? now : []) {
        if (one.heldMiB?.get(place) === heldMiB) contexts.note(device, heldMiB);
      }
      const found = checkMemory(one, now, unbound.has(one.container.id), contexts.of(device));
      if (found === undefined) continue;
      const { finding, heldMiB, boundMiB } = found;
      const text =
        finding === 'overrun'
          ? `The action used ${heldMiB} MiB of GPU memory, more than its limit of ${boundMiB} MiB, and was aborted.`
          : `It held ${heldMiB} MiB of GPU memory without an action, more than ${boundMiB} MiB.`;
      healer.end(one, { text, byAction: finding === 'overrun' });
    }
  }

  /** Confirms once for each of the platform's processes that it is under its share. */
  private async confirm(): Promise<void> {
    const { enforcer, gpuContainers, healer } = this.parts;
    if (enforcer.name === 'none') return;
    for (const { uuid, processes } of this.last) {
      for (const { pid, container, slice } of processes.filter((one) => isOurs(one) && !this.confirmed.has(one.pid))) {
        this.confirmed.add(pid);
        try {
          await enforcer.confirm({ pid, device: uuid, ...(slice !== undefined && { slice }) });
        } catch (error) {
          const one = container === undefined ? undefined : gpuContainers.get(container);
          const text = `The action's process is not held to its share of the GPU: ${(error as Error).message}.`;
          if (one !== undefined) healer.end(one, { text, byAction: false });
        }
      }
    }
  }

  private async checkEnforcer(): Promise<void> {
    const { enforcer, inventory, healer } = this.parts;
    const inUse = inventory
      .places()
      .filter(({ device }) => !inventory.isLost(device.uuid) && device.mode !== 'timeslice');
    const served = new Set(this.parts.gpuContainers.all().flatMap(({ grant }) => placesOf(grant)));
    const first = inUse.filter(({ device, slice }) => served.has(slice ?? device.uuid));
    const candidates = first.length > 0 ? first : inUse;
    const place = candidates[this.asked++ % candidates.length];
    if (place === undefined) return;
    const problem = await enforcer.check(place.device.uuid, place.slice).catch((error: Error) => error.message);
    if (problem !== undefined) await healer.restart(place, problem);
  }

  /** Keeps new work off devices with memory of ended processes, which only the driver can free. */
  private async checkProcesses(): Promise<void> {
    const { processes, inventory } = this.parts;
    for (const { uuid, processes: there } of this.last) {
      const alive = await Promise.all(there.filter((one) => !isOurs(one)).map(({ pid }) => processes.isAlive(pid)));
      inventory.setTrouble(uuid, zombie, alive.includes(false));
    }
  }
}

const isOurs = ({ container }: GpuProcess): boolean => container !== undefined;

/** Facts by which samples become statuses of the GPU table. */
interface SampleView {
  devices: readonly Device[];
  /** The container of a host process; undefined if the process is not the platform's. */
  containerOf(pid: number): string | undefined;
  healthOf(device: string): DeviceHealth;
  /** Measured size of a context on a device, MiB; undefined if none was measured yet. */
  contextMiB(device: string): number | undefined;
  /** Time of the samples, epoch ms. */
  at: number;
}

/** The status of every device; a device without a sample has only its health. */
export function deviceStatuses(samples: readonly DeviceSample[], view: SampleView): DeviceStatus[] {
  const byUuid = new Map(samples.map((sample) => [sample.uuid, sample]));
  return view.devices.map(({ uuid }) => {
    const health = view.healthOf(uuid);
    const sample = byUuid.get(uuid);
    if (sample === undefined) return { uuid, at: view.at, usedMemoryMiB: 0, health, processes: [] };
    const { usedMemoryMiB, utilisation, smActivity, dramActivity, temperatureC, powerW } = sample;
    const contextMiB = view.contextMiB(uuid);
    const told = { utilisation, smActivity, dramActivity, temperatureC, powerW, contextMiB };
    const figures = Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined));
    const processes = sample.processes.map((process) => owned(process, view));
    return { uuid, at: view.at, usedMemoryMiB, ...figures, health, processes };
  });
}

function owned(process: DeviceSample['processes'][number], view: SampleView): GpuProcess {
  const container = view.containerOf(process.pid);
  return container === undefined ? { ...process } : { ...process, container };
}

/** Memory held by processes other than the platform's, by device or slice, MiB. */
function foreignMemory(statuses: readonly DeviceStatus[]): Map<string, number> {
  const foreign = new Map<string, number>();
  for (const { uuid, processes } of statuses) {
    for (const { container, slice = uuid, memoryMiB } of processes) {
      if (container === undefined) foreign.set(slice, (foreign.get(slice) ?? 0) + memoryMiB);
    }
  }
  return foreign;
}

/** Memory held by each container, by device or slice, MiB. */
function containerMemory(statuses: readonly DeviceStatus[]): Map<string, Map<string, number>> {
  const held = new Map<string, Map<string, number>>();
  for (const { uuid, processes } of statuses) {
    for (const { container, slice = uuid, memoryMiB } of processes) {
      if (container === undefined) continue;
      const own = held.get(container) ?? new Map<string, number>();
      held.set(container, own.set(slice, (own.get(slice) ?? 0) + memoryMiB));
    }
  }
  return held;
}

/**
 * Sizes of CUDA contexts: the least memory of processes that idle before their first function. A size applies to a driver, a
 * type of device and a sharing mode, since the context of an MPS client is smaller.
 */
export class ContextSizes {
  private readonly keys = new Map<string, string>();
  private readonly sizes = new Map<string, number>();

  constructor(private readonly driver: string) {}

  setDevices(devices: readonly Device[]): void {
    for (const { uuid, type, mode } of devices) this.keys.set(uuid, `${this.driver} ${type} ${mode}`);
  }

  /** Notes the memory of a process that has run no function yet, MiB. */
  note(device: string, heldMiB: number): void {
    const key = this.keys.get(device);
    if (key === undefined || heldMiB <= 0) return;
    this.sizes.set(key, Math.min(heldMiB, this.sizes.get(key) ?? Infinity));
  }

  /** Size of a context on a device, MiB; undefined if none was measured yet. */
  of(device: string): number | undefined {
    return this.sizes.get(this.keys.get(device) ?? '');
  }
}
