// Shares that the enforcer holds containers to: moved with the function that a container runs, and bounded by ceilings.
import type { Share, Device, Workload } from '@gpuwhisk/common/gpu';
import { workloadTable } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { GpuGrant } from '../containers/container-factory.js';
import { placesOf } from '../pool/memory-budget.js';
import type { ShareEnforcer, ShareClient, ShareCeiling } from './enforcers/share-enforcer.js';
import type { GpuContainer, GpuContainers } from './gpu-containers.js';
import type { HostProcesses } from './host/host-processes.js';
import type { Inventory, Place } from './inventory.js';

/** Dependencies of ShareUpdates. */
interface ShareUpdatesParts {
  enforcer: ShareEnforcer;
  gpuContainers: GpuContainers;
  clients: ContainerClients;
  logger: Logger;
}

/** What the enforcer holds a container to, and for which action. */
interface Held {
  share: Share;
  action: string | undefined;
}

/**
 * Holds warm processes to what the function in them was placed with. A process keeps the terms that it was started with, and
 * the class and the memory are just those; what it requests and its limit below the class are the function's.
 */
export class ShareUpdates {
  private readonly held = new WeakMap<GpuContainer, Held>();
  private readonly failed = new WeakSet<GpuContainer>();
  private moving: Promise<void> = Promise.resolve();

  constructor(private readonly parts: ShareUpdatesParts) {}

  /**
   * Moves the shares of all containers whose function is another, or was placed with another share, than what they are held
   * to. A process that has made no call of CUDA yet is moved at a later look. Never rejects.
   */
  look(): Promise<void> {
    if (!this.parts.enforcer.adjusts) return this.moving;
    this.moving = this.moving.then(async () => {
      for (const one of this.parts.gpuContainers.all()) if (this.isOther(one)) await this.move(one);
    });
    return this.moving;
  }

  private isOther(one: GpuContainer): boolean {
    const { lastUser, share, grant, ending } = one;
    // Several devices are held by MPS alone.
    if (lastUser === undefined || ending || grant.devices.length > 1) return false;
    const held = this.held.get(one) ?? { share: grant.share, action: undefined };
    const isSame = haveSameTerms(held.share, share) && (held.action ?? lastUser.action) === lastUser.action;
    if (isSame && held.action === undefined) this.held.set(one, { share, action: lastUser.action });
    return !isSame;
  }

  private async move(one: GpuContainer): Promise<void> {
    const { enforcer, clients, logger } = this.parts;
    const { share, lastUser } = one;
    const before = this.held.get(one)?.action;
    try {
      const client = await clients.of(one);
      if (client === undefined) return;
      await enforcer.adjust(client, share, before !== undefined && before !== lastUser?.action);
      this.held.set(one, { share, action: lastUser?.action });
      this.failed.delete(one);
    } catch (error) {
      // Its process may just have ended; otherwise the next look tries again.
      if (this.failed.has(one)) return;
      this.failed.add(one);
      logger.warn({ container: one.container.id, error: String(error) }, 'the share of a process could not be moved');
    }
  }
}

function haveSameTerms(one: Share, other: Share): boolean {
  return (
    one.smRequest === other.smRequest &&
    one.smLimit === other.smLimit &&
    one.tokens?.maxTokens === other.tokens?.maxTokens &&
    one.tokens?.violation === other.tokens?.violation
  );
}

/** Which process of a container an enforcer knows; all processes of one have one share. */
export class ContainerClients {
  private readonly found = new WeakMap<GpuContainer, number>();

  constructor(
    private readonly enforcer: ShareEnforcer,
    private readonly processes: HostProcesses,
  ) {}

  /** Undefined: none of its processes has made a call of CUDA yet. Rejects with ShareError. */
  async of(one: GpuContainer): Promise<ShareClient | undefined> {
    const { container, grant } = one;
    const clients = await this.enforcer.clients(grant.devices[0] ?? '', grant.slice);
    const known = clients.find(({ pid }) => pid === this.found.get(one));
    if (known !== undefined) return known;
    const launchers = new Map(container.hostPid === undefined ? [] : [[container.hostPid, container.id]]);
    for (const client of clients) {
      if ((await this.processes.containerOf(client.pid, launchers)) !== container.id) continue;
      this.found.set(one, client.pid);
      return client;
    }
    return undefined;
  }
}

/** Dependencies of ShareCeilings. */
interface ShareCeilingsParts {
  invoker: string;
  enforcer: ShareEnforcer;
  inventory: Inventory;
  gpuContainers: GpuContainers;
  state: Pick<ClusterState, 'rows'>;
  logger: Logger;
}

/**
 * Holds all clients of a device's or slice's enforcer to the largest share that one of them was granted. A process sets its
 * own share by its environment, which it may clear; the enforcer's server lets it have no more than the ceiling.
 */
export class ShareCeilings {
  /** Grants of containers that are being started. */
  private readonly starting = new Set<GpuGrant>();
  private workloads: readonly Workload[] = [];
  private last: Promise<void> = Promise.resolve();

  constructor(private readonly parts: ShareCeilingsParts) {}

  /** A container with this grant is about to start: its share can be had once this resolves. Rejects with ShareError. */
  starts(grant: GpuGrant): Promise<void> {
    this.starting.add(grant);
    const places = this.parts.inventory
      .places()
      .filter(({ device, slice }) => placesOf(grant).includes(slice ?? device.uuid));
    return this.inTurn(() => this.set(places));
  }

  /** It has started, and is a resident, or never will be. */
  isOver(grant: GpuGrant): void {
    this.starting.delete(grant);
  }

  /** Lowers and raises all ceilings to what is there now. Never rejects. */
  look(): Promise<void> {
    const { inventory, logger } = this.parts;
    return this.inTurn(() => this.set(inventory.places())).catch((error: unknown) => {
      // An enforcer that does not answer is started again by the checks of the agent.
      logger.debug({ error: String(error) }, 'the ceilings of shares could not be set');
    });
  }

  /** What is set by one reading of who is there must not be undone by an older one. */
  private inTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.last.then(work);
    this.last = turn.catch(() => undefined);
    return turn;
  }

  private async set(places: readonly Place[]): Promise<void> {
    const { enforcer, inventory } = this.parts;
    if (enforcer.limitClients === undefined) return;
    await this.readWorkloads();
    const failures: unknown[] = [];
    for (const { device, slice } of places) {
      if (inventory.isLost(device.uuid) || (slice === undefined && device.mode !== 'mps')) continue;
      const ceiling = this.ceilingOf(device, slice);
      await enforcer.limitClients(device.uuid, slice, ceiling).catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }

  private async readWorkloads(): Promise<void> {
    const { state, invoker, logger } = this.parts;
    try {
      const rows = [...(await state.rows(workloadTable)).values()] as unknown as Workload[];
      this.workloads = rows.filter((one) => one.invoker === invoker && one.origin === 'started' && one.ended !== true);
    } catch (error) {
      logger.debug({ error: String(error) }, 'the table of workloads cannot be read'); // Those known before still count.
    }
  }

  /** Where no function's process can connect there is nothing to limit. */
  private ceilingOf(device: Device, slice: string | undefined): ShareCeiling {
    const place = slice ?? device.uuid;
    const starting = [...this.starting].filter((grant) => placesOf(grant).includes(place));
    const grants = [...this.parts.gpuContainers.at(place).map(({ grant }) => grant), ...starting];
    const capacityMiB = device.slices.find(({ uuid }) => uuid === slice)?.memoryMiB ?? device.memoryMiB;
    if (grants.length === 0) return { percent: 100, memoryMiB: capacityMiB };
    // A started workload is a client of its whole device, never of a slice.
    const beside = slice === undefined ? this.workloads.filter((one) => one.device === device.uuid) : [];
    return {
      percent: Math.max(
        ...grants.map(({ share }) => share.shareClass),
        ...beside.map(({ mpsPercent = 100 }) => mpsPercent),
      ),
      memoryMiB: Math.max(
        ...grants.map(({ share }) => share.memoryMiB),
        ...beside.map(({ memoryMiB = capacityMiB }) => memoryMiB),
      ),
    };
  }
}
