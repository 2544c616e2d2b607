import type { GpuContainer } from './residents.js';

/** Growth over what a container held before its first function that is still no leak, MiB. */
const leakMiB = 64;
/** What a context takes, at most, MiB: MPS counts only what is allocated against a cap, the driver's figures have both. */
const contextMiB = 768;
/** Looks in a row at which a container is over its cap before it is ended: one may fall into a release. */
const overrunLooks = 2;

/** What is wrong with the device memory of a container. */
export type MemoryFinding = { finding: 'overrun' | 'leak'; heldMiB: number; boundMiB: number };

/**
 * Notes what a container holds, and says what is wrong with it. `isUnbound`: it waits for an action, so that nothing of
 * one may be left in it.
 */
export function checkMemory(one: GpuContainer, heldMiB: number, isUnbound: boolean): MemoryFinding | undefined {
  one.measuredMiB = heldMiB;
  // Before the first function; a context may still be on its way.
  if (one.lastUser === undefined) one.baselineMiB = Math.max(one.baselineMiB ?? 0, heldMiB);
  const capMiB = one.grant.share.memoryMiB;
  one.overruns = heldMiB > capMiB + contextMiB ? one.overruns + 1 : 0;
  if (one.overruns >= overrunLooks) return { finding: 'overrun', heldMiB, boundMiB: capMiB };
  if (!isUnbound || one.lastUser === undefined || one.users.size > 0) return undefined;
  const boundMiB = (one.baselineMiB ?? 0) + leakMiB;
  return heldMiB > boundMiB ? { finding: 'leak', heldMiB, boundMiB } : undefined;
}
