// Work that is not the platform's, on devices where the platform runs MPS and the compute mode lets other processes in.
import type { DeviceStatus } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import { foreignWorkThere } from './device-faults.js';
import type { DeviceUse, ShareEnforcer } from './enforcers/share-enforcer.js';
import type { GpuContainers } from './gpu-containers.js';
import type { Healer } from './healer.js';
import type { HostProcesses } from './host/host-processes.js';
import type { Inventory } from './inventory.js';

/** Dependencies of ForeignWork. */
interface ForeignWorkParts {
  enforcer: ShareEnforcer;
  inventory: Inventory;
  gpuContainers: GpuContainers;
  healer: Healer;
  processes: Pick<HostProcesses, 'isAlive'>;
  logger: Logger;
  /** Reads the devices and their modes again. */
  refresh(): Promise<void>;
}

/** Looks in a row with foreign work before it counts: memory of an ended process may be listed a moment longer. */
const foreignLooks = 3;

/** Empties devices that foreign work uses past MPS, and has functions take turns with it there from then on. */
export class ForeignWork {
  /** By device, looks in a row with foreign work. */
  private readonly seen = new Map<string, number>();
  /** Servers and clients of MPS: a check runs programs, so that each process is checked once. */
  private insiders = new Set<number>();

  constructor(private readonly parts: ForeignWorkParts) {}

  /** One look at the devices that functions share by MPS. Never rejects. */
  async look(statuses: readonly DeviceStatus[]): Promise<void> {
    const { enforcer, inventory, logger } = this.parts;
    if (enforcer.foreignWork === undefined) return;
    const listed = new Set(statuses.flatMap(({ processes }) => processes.map(({ pid }) => pid)));
    this.insiders = new Set([...this.insiders].filter((pid) => listed.has(pid)));
    for (const status of statuses) {
      if (inventory.find(status.uuid)?.mode !== 'mps') continue;
      try {
        const use = await this.useOf(status);
        const why = await enforcer.foreignWork(status.uuid, use);
        if (why === undefined) for (const { pid } of use.others) this.insiders.add(pid);
        await this.note(status.uuid, why);
      } catch (error) {
        // The daemon is being started again, or a client has just come: the next look decides.
        logger.debug({ device: status.uuid, error: String(error) }, 'foreign work could not be looked for');
      }
    }
  }

  private async note(device: string, why: string | undefined): Promise<void> {
    const { enforcer, inventory, gpuContainers, healer, logger, refresh } = this.parts;
    const looks = why === undefined ? 0 : (this.seen.get(device) ?? 0) + 1;
    this.seen.set(device, looks);
    inventory.setTrouble(device, foreignWorkThere, looks >= foreignLooks);
    if (why === undefined || looks < foreignLooks) return;
    if (looks === foreignLooks) logger.warn({ device, why }, 'a GPU with MPS gets no new work: other work uses it');
    if (!isEmptied(device, gpuContainers, healer)) return;
    await enforcer.giveUp?.(device, `MPS was ended, since other work came: ${why}`);
    inventory.setTrouble(device, foreignWorkThere, false);
    logger.warn({ device, why }, 'functions and other work take turns on a GPU until the next start');
    await refresh();
  }

  /**
   * What the driver tells of a device's use. Memory that no process holds is not told while a process of a container on the
   * device is missing in the driver's list, as in some containers of the host.
   */
  private async useOf({ uuid, processes, usedMemoryMiB }: DeviceStatus): Promise<DeviceUse> {
    const unknown = processes.filter(({ container, pid }) => container === undefined && !this.insiders.has(pid));
    const alive = await Promise.all(unknown.map(({ pid }) => this.parts.processes.isAlive(pid)));
    const others = unknown.filter((_, at) => alive[at]);
    const isListed = this.parts.gpuContainers
      .on(uuid)
      .every(({ container }) => processes.some((one) => one.container === container.id && one.memoryMiB > 0));
    const listedMiB = processes.reduce((sum, { memoryMiB }) => sum + memoryMiB, 0);
    return { others, unlistedMiB: isListed ? usedMemoryMiB - listedMiB : undefined };
  }
}

/** Ends the idle containers of a device that gets no new work. Whether no container is left there. */
export function isEmptied(device: string, gpuContainers: GpuContainers, healer: Pick<Healer, 'end'>): boolean {
  const there = gpuContainers.on(device);
  for (const one of there.filter(({ users, ending }) => users.size === 0 && !ending)) {
    healer.end(one, { text: 'The GPU is being drained.', byAction: false });
  }
  return there.length === 0;
}
