import type { GpuContainer } from './residents.js';

/** Growth over what a container held before its first function that is still no leak, MiB. */
const leakMiB = 64;
/** What a context takes, at most, MiB: MPS counts only what is allocated against a cap, the driver's figures have both. */
const contextMiB = 768;
/** Looks in a row at which a container is over its cap before it is ended: one may fall into a release. */
const overrunLooks = 2;

/** What is wrong with the device memory of a container. */
export type MemoryFinding = { finding: 'overrun' | 'leak'; heldMiB: number; boundMiB: number };

/** What a container holds, by device or slice, MiB. */
type Held = ReadonlyMap<string, number>;

/**
 * Notes what a container holds, and says what is wrong with it. `isUnbound`: it waits for an action, so that nothing of
 * one may be left in it.
 */
export function checkMemory(one: GpuContainer, held: Held, isUnbound: boolean): MemoryFinding | undefined {
  const { baselineMiB, grant, users } = one;
  one.heldMiB = held;
  // Before the first function; a context may still be on its way.
  if (one.lastUser === undefined) {
    for (const [place, heldMiB] of held) baselineMiB.set(place, Math.max(baselineMiB.get(place) ?? 0, heldMiB));
  }
  const capMiB = grant.share.memoryMiB;
  const most = Math.max(0, ...held.values());
  one.overruns = most > capMiB + contextMiB ? one.overruns + 1 : 0;
  if (one.overruns >= overrunLooks) return { finding: 'overrun', heldMiB: most, boundMiB: capMiB };
  if (!isUnbound || one.lastUser === undefined || users.size > 0) return undefined;
  for (const [place, heldMiB] of held) {
    const boundMiB = (baselineMiB.get(place) ?? 0) + leakMiB;
    if (heldMiB > boundMiB) return { finding: 'leak', heldMiB, boundMiB };
  }
  return undefined;
}
