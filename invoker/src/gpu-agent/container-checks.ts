// Checks of containers with a GPU at each look at the devices: their kernel launches and their device memory.
import type { DeviceStatus } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { ContainerClients } from './container-shares.js';
import type { ShareEnforcer } from './enforcers/share-enforcer.js';
import type { GpuContainer, GpuContainers } from './gpu-containers.js';
import type { Healer } from './healer.js';

/** Dependencies of LaunchChecks. */
interface LaunchParts {
  enforcer: ShareEnforcer;
  gpuContainers: GpuContainers;
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
export class LaunchChecks {
  private lastMs: number;

  constructor(private readonly parts: LaunchParts) {
    this.lastMs = parts.clock.monotonicMs();
  }

  /** Ends the containers whose processes count launches that no device ran. Never rejects. */
  async look(statuses: readonly DeviceStatus[]): Promise<void> {
    const { enforcer, gpuContainers, clients, clock, logger } = this.parts;
    if (enforcer.launches === undefined) return;
    const nowMs = clock.monotonicMs();
    const elapsedMs = Math.max(1, nowMs - this.lastMs);
    this.lastMs = nowMs;
    for (const one of gpuContainers.all()) {
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

/** Growth over what a container held before its first function that is still no leak, MiB. */
const leakMiB = 64;
/** What the driver takes for itself beyond a function's allocations, at most, MiB, as long as no context was measured. */
const unknownContextMiB = 768;
/** What it takes for code and stacks beyond a fresh context, at most, MiB. */
const codeMiB = 256;
/** Looks in a row at which a container is over its cap before it is ended: one may fall into a release. */
const overrunLooks = 2;

/** What is wrong with the device memory of a container. */
type MemoryFinding = { finding: 'overrun' | 'leak'; heldMiB: number; boundMiB: number };

/** What a container holds, by device or slice, MiB. */
type Held = ReadonlyMap<string, number>;

/**
 * Notes what a container holds, and says what is wrong with it. `isUnbound`: it waits for an action, so that nothing of
 * one may be left in it. `contextMiB`: what a context was measured to take.
 */
export function checkMemory(
  one: GpuContainer,
  held: Held,
  isUnbound: boolean,
  contextMiB?: number,
): MemoryFinding | undefined {
  const { baselineMiB, grant, users } = one;
  one.heldMiB = held;
  // Before the first function; a context may still be on its way.
  if (one.lastUser === undefined) {
    for (const [place, heldMiB] of held) baselineMiB.set(place, Math.max(baselineMiB.get(place) ?? 0, heldMiB));
  }
  const capMiB = grant.share.memoryMiB;
  const most = Math.max(0, ...held.values());
  // MPS counts only what is allocated against a cap, the driver's figures have all.
  const ownMiB = contextMiB === undefined ? unknownContextMiB : contextMiB + codeMiB;
  one.overruns = most > capMiB + ownMiB ? one.overruns + 1 : 0;
  if (one.overruns >= overrunLooks) return { finding: 'overrun', heldMiB: most, boundMiB: capMiB };
  if (!isUnbound || one.lastUser === undefined || users.size > 0) return undefined;
  if (baselineMiB.size === 0) return withoutBaseline(one, held, most, contextMiB);
  for (const [place, heldMiB] of held) {
    const boundMiB = (baselineMiB.get(place) ?? 0) + leakMiB;
    if (heldMiB > boundMiB) return { finding: 'leak', heldMiB, boundMiB };
  }
  return undefined;
}

/**
 * It had a function before anybody looked, so that what it held without one is what it holds now; unless that is more than a
 * context and code can take.
 */
function withoutBaseline(
  one: GpuContainer,
  held: Held,
  most: number,
  contextMiB: number | undefined,
): MemoryFinding | undefined {
  const boundMiB = (contextMiB === undefined ? unknownContextMiB : contextMiB + codeMiB) + leakMiB;
  if (most > boundMiB) return { finding: 'leak', heldMiB: most, boundMiB };
  for (const [place, heldMiB] of held) one.baselineMiB.set(place, heldMiB);
  return undefined;
}
