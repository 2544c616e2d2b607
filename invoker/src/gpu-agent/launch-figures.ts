import type { DeviceStatus } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { ContainerClients } from './container-clients.js';
import type { ShareEnforcer } from './enforcers/share-enforcer.js';
import type { Healer } from './healer.js';
import type { GpuContainer, Residents } from './residents.js';

/** What LaunchNotes works with. */
export interface LaunchParts {
  enforcer: ShareEnforcer;
  residents: Residents;
  clients: ContainerClients;
  healer: Healer;
  clock: Pick<Clock, 'monotonicMs'>;
  logger: Logger;
}

/** More blocks than any GPU finishes in a millisecond (native/token-server/ticker.cpp has the same bound). */
const blocksPerMs = 2_000_000;
/** Part of a device that launches take at least, from which on the driver must have seen some of it. */
const visiblePart = 0.05;
/** Looks in a row: what was launched just before one runs after it. */
const unseenLooks = 2;

/** Notes what the processes of each container have launched, where launches are counted, against what the driver saw run. */
export class LaunchNotes {
  private lastMs: number;

  constructor(private readonly parts: LaunchParts) {
    this.lastMs = parts.clock.monotonicMs();
  }

  /** Ends the containers whose processes count launches that no device ran. Never rejects. */
  async look(statuses: readonly DeviceStatus[]): Promise<void> {
    const { enforcer, residents, clients, clock, logger } = this.parts;
    if (enforcer.launches === undefined) return;
    const nowMs = clock.monotonicMs();
    const elapsedMs = Math.max(1, nowMs - this.lastMs);
    this.lastMs = nowMs;
    for (const one of residents.all()) {
      // Several devices are held by MPS alone, which counts nothing.
      if (one.ending || one.grant.devices.length > 1) continue;
      try {
        const before = one.launches?.blocks;
        const client = await clients.of(one);
        one.launches = client === undefined ? undefined : await enforcer.launches(client);
        if (before === undefined || one.launches === undefined) continue;
        this.check(one, (one.launches.blocks - before) / elapsedMs, statuses);
      } catch (error) {
        one.launches = undefined; // Its process has just ended, or the enforcer is out of order, which is told elsewhere.
        logger.debug({ container: one.container.id, error: String(error) }, 'no figures of launches');
      }
    }
  }

  private check(one: GpuContainer, perMs: number, statuses: readonly DeviceStatus[]): void {
    const isSeen = statuses.find(({ uuid }) => uuid === one.grant.devices[0])?.utilisation !== 0;
    one.unseenLaunches = !isSeen && perMs / blocksPerMs > visiblePart ? one.unseenLaunches + 1 : 0;
    if (one.unseenLaunches < unseenLooks) return;
    const text = 'A process of the action counted kernels that the GPU did not run.';
    this.parts.healer.end(one, { text, byAction: true });
  }
}
