// Shares that the enforcer holds containers to: updates for the function that a container runs, and ceilings.
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

/** The share that the enforcer holds a container to, and the action that the share is for. */
interface Held {
  share: Share;
  action: string | undefined;
}

/**
 * Holds warm processes to the share of the function that they run. A process keeps its class and its memory limit from its
 * start; request and limit follow the function's placement.
 */
export class ShareUpdates {
  private readonly held = new WeakMap<GpuContainer, Held>();
  private readonly failed = new WeakSet<GpuContainer>();
  private moving: Promise<void> = Promise.resolve();

  constructor(private readonly parts: ShareUpdatesParts) {}

  /**
   * Updates the shares of all containers whose function or placed share has changed. A process that has made no CUDA call
   * yet is updated at a later look. Never rejects.
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
    // Containers on several devices are held by MPS alone.
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
      // The process may just have ended; otherwise the next look retries.
      if (this.failed.has(one)) return;
      this.failed.add(one);
      logger.warn({ container: one.container.id, error: String(error) }, 'the share of a process could not be changed');
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

/** Finds the process of a container that is an enforcer's client; all processes of a container have one share. */
export class ContainerClients {
  private readonly found = new WeakMap<GpuContainer, number>();

  constructor(
    private readonly enforcer: ShareEnforcer,
    private readonly processes: HostProcesses,
  ) {}

  /** The client of a container; undefined if none of its processes has made a CUDA call yet. Rejects with ShareError. */
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
 * Holds all clients of a device or slice to the largest share that one of them was granted. A process sets its own share by
 * its environment, which it may clear; the enforcer's server bounds it by the ceiling.
 */
export class ShareCeilings {
  /** Grants of containers that are being started. */
  private readonly starting = new Set<GpuGrant>();
  private workloads: readonly Workload[] = [];
  private last: Promise<void> = Promise.resolve();

  constructor(private readonly parts: ShareCeilingsParts) {}

  /**
   * Called before a container with this grant starts: its share is available once this resolves. Rejects with ShareError.
   */
  starts(grant: GpuGrant): Promise<void> {
    this.starting.add(grant);
    const places = this.parts.inventory
      .places()
      .filter(({ device, slice }) => placesOf(grant).includes(slice ?? device.uuid));
    return this.inTurn(() => this.set(places));
  }

  /** Called after a start with this grant has succeeded or failed. */
  isOver(grant: GpuGrant): void {
    this.starting.delete(grant);
  }

  /** Adjusts all ceilings to the present clients. Never rejects. */
  look(): Promise<void> {
    const { inventory, logger } = this.parts;
    return this.inTurn(() => this.set(inventory.places())).catch((error: unknown) => {
      // The agent's checks restart an enforcer that does not answer.
      logger.debug({ error: String(error) }, 'the ceilings of shares could not be set');
    });
  }

  /** Runs updates one after another: an older reading of the clients must not overwrite a newer one. */
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
      logger.debug({ error: String(error) }, 'the table of workloads cannot be read'); // The workloads known before still count.
    }
  }

  /** The ceiling of a device or slice; the whole device if no function's process can connect. */
  private ceilingOf(device: Device, slice: string | undefined): ShareCeiling {
    const place = slice ?? device.uuid;
    const starting = [...this.starting].filter((grant) => placesOf(grant).includes(place));
    const grants = [...this.parts.gpuContainers.at(place).map(({ grant }) => grant), ...starting];
    const capacityMiB = device.slices.find(({ uuid }) => uuid === slice)?.memoryMiB ?? device.memoryMiB;
    if (grants.length === 0) return { percent: 100, memoryMiB: capacityMiB };
    // A workload is a client of its whole device, never of a slice.
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
