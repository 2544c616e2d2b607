// Checks of containers with a GPU at each look at the devices: their kernel launches and their device memory.
import type { DeviceStatus } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { GpuGrant } from '../containers/container-factory.js';
import { grantedMiB } from '../pool/memory-budget.js';
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
/** Least part of a device's time that counted launches must take before the driver must have seen activity. */
const visiblePart = 0.05;
/** Looks in a row without activity: kernels that were launched just before a look run after it. */
const unseenLooks = 2;

/** Compares the launches that each container's processes count with the activity that the driver reports. */
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
      // Containers on several devices are held by MPS alone, which counts no launches.
      if (one.ending || one.grant.devices.length > 1) continue;
      try {
        const before = one.launches?.blocks;
        const client = await clients.of(one);
        one.launches = client === undefined ? undefined : await enforcer.launches(client);
        if (before === undefined || one.launches === undefined) continue;
        this.check(one, (one.launches.blocks - before) / elapsedMs, statuses);
      } catch (error) {
        one.launches = undefined; // The process has just ended, or the enforcer has failed, which other checks report.
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

/** Growth over a container's memory before its first function that does not count as a leak, MiB. */
const leakMiB = 64;
/** The driver's own memory besides a function's allocations, at most, as long as no context was measured; MiB. */
const unknownContextMiB = 768;
/** The driver's memory for code and stacks besides a fresh context, at most, MiB. */
const codeMiB = 256;
/** Looks in a row with a container over its cap before the container is ended: a single one may fall into a release. */
const overrunLooks = 2;

/** A problem of a container's device memory. */
type MemoryFinding = { finding: 'overrun' | 'leak'; heldMiB: number; boundMiB: number };

/** Memory that a container holds, by device or slice, MiB. */
type Held = ReadonlyMap<string, number>;

/**
 * Notes the memory that a container holds, and returns a problem if there is one. `isUnbound`: the container waits for an
 * action and must hold no memory of an earlier one. `contextMiB`: measured size of a context.
 */
export function checkMemory(
  one: GpuContainer,
  held: Held,
  isUnbound: boolean,
  contextMiB?: number,
): MemoryFinding | undefined {
  const { baselineMiB, grant, users } = one;
  one.heldMiB = held;
  // Before the first function, while a context may still be created.
  if (one.lastUser === undefined) {
    for (const [place, heldMiB] of held) baselineMiB.set(place, Math.max(baselineMiB.get(place) ?? 0, heldMiB));
  }
  const most = Math.max(0, ...held.values());
  const { heldMiB, capMiB } = mostOver(grant, held);
  // MPS counts only allocations against a cap; the driver's figures include its own memory.
  const ownMiB = contextMiB === undefined ? unknownContextMiB : contextMiB + codeMiB;
  one.overruns = heldMiB > capMiB + ownMiB ? one.overruns + 1 : 0;
  if (one.overruns >= overrunLooks) return { finding: 'overrun', heldMiB, boundMiB: capMiB };
  if (!isUnbound || one.lastUser === undefined || users.size > 0) return undefined;
  if (baselineMiB.size === 0) return withoutBaseline(one, held, most, contextMiB);
  for (const [place, placeMiB] of held) {
    const boundMiB = (baselineMiB.get(place) ?? 0) + leakMiB;
    if (placeMiB > boundMiB) return { finding: 'leak', heldMiB: placeMiB, boundMiB };
  }
  return undefined;
}

/** The memory held on the place where it exceeds its cap by most, and that cap, MiB. */
function mostOver(grant: GpuGrant, held: Held): { heldMiB: number; capMiB: number } {
  let worst = { heldMiB: 0, capMiB: grant.share.memoryMiB };
  for (const [place, heldMiB] of held) {
    const capMiB = grantedMiB(grant, place);
    if (heldMiB - capMiB > worst.heldMiB - worst.capMiB) worst = { heldMiB, capMiB };
  }
  return worst;
}

/**
 * Sets the baseline of a container that had a function before the first look: its present memory. A memory beyond the size
 * of a context with code is a leak instead.
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
