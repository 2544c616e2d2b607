import { workloadTable } from '@gpuwhisk/common/gpu';
import type { Workload, Device } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { GpuGrant } from '../containers/container-factory.js';
import { placesOf } from '../pool/memory-budget.js';
import type { ShareCeiling, ShareEnforcer } from './enforcers/share-enforcer.js';
import type { Inventory, Place } from './inventory.js';
import type { Residents } from './residents.js';

/** What ShareCeilings works with. */
export interface ShareCeilingsParts {
  invoker: string;
  enforcer: ShareEnforcer;
  inventory: Inventory;
  residents: Residents;
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
    const grants = [...this.parts.residents.at(place).map(({ grant }) => grant), ...starting];
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
