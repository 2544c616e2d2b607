import type { GpuContainer } from './residents.js';

/** Growth over what a container held before its first function that is still no leak, MiB. */
const leakMiB = 64;
/** What the driver takes for itself beyond a function's allocations, at most, MiB, as long as no context was measured. */
const unknownContextMiB = 768;
/** What it takes for code and stacks beyond a fresh context, at most, MiB. */
const codeMiB = 256;
/** Looks in a row at which a container is over its cap before it is ended: one may fall into a release. */
const overrunLooks = 2;

/** What is wrong with the device memory of a container. */
export type MemoryFinding = { finding: 'overrun' | 'leak'; heldMiB: number; boundMiB: number };

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
