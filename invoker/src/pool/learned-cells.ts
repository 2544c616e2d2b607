// How many containers with learned modules are kept ready, and of which sets of modules.

/** A set of learned modules, as the plan weighs it. */
export interface WeighedSet {
  namespace: string;
  /** Time that a start saves, ms. */
  savesMs: number;
  /** Starts that are expected within the time that containers are kept. */
  expected: number;
  /** Memory of one container, MiB. */
  memoryMiB: number;
}

/** Containers of one set, at most. */
export const maxReady = 4;
/** Expected starts below which a set has no container. */
const leastExpected = 0.05;
/** Time in which the weight of a start halves, ms. */
const halfLifeMs = 300_000;

/**
 * How many containers each set has ready: those of most saved time × expected starts / MiB, as many as fit in `memoryMiB`
 * together. The n-th container of a set counts for an n-th of its starts, and needs n of them. Namespaces get more than an
 * equal part of the memory only if others do not use theirs: what they report of their imports weighs for themselves.
 */
export function planReady(sets: readonly WeighedSet[], memoryMiB: number): number[] {
  const counts = sets.map(() => 0);
  const candidates = sets.flatMap(({ namespace, savesMs, expected, memoryMiB: ownMiB }, at) =>
    Array.from({ length: maxReady }, (_, index) => index + 1)
      .filter((number) => expected >= (number === 1 ? leastExpected : number))
      .map((number) => ({ at, namespace, ownMiB, benefit: (savesMs * expected) / number / ownMiB })),
  );
  const usedMiB = new Map(candidates.map(({ namespace }) => [namespace, 0]));
  const equalMiB = memoryMiB / usedMiB.size;
  let leftMiB = memoryMiB;
  let waiting = candidates.sort((a, b) => b.benefit - a.benefit);
  for (const partMiB of [equalMiB, memoryMiB]) {
    waiting = waiting.filter(({ at, namespace, ownMiB }) => {
      const ofNamespaceMiB = (usedMiB.get(namespace) ?? 0) + ownMiB;
      if (ownMiB > leftMiB || ofNamespaceMiB > partMiB) return true;
      leftMiB -= ownMiB;
      usedMiB.set(namespace, ofNamespaceMiB);
      counts[at] = (counts[at] ?? 0) + 1;
      return false;
    });
  }
  return counts;
}

/** Counts starts; older ones count less. */
export class StartCount {
  private count = 0;
  private atMs = 0;

  add(nowMs: number): void {
    this.count = this.expected(nowMs) + 1;
    this.atMs = nowMs;
  }

  /** Starts to expect in the time that halves the weight of a start. */
  expected(nowMs: number): number {
    return this.count * 2 ** ((this.atMs - nowMs) / halfLifeMs);
  }
}
