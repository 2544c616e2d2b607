import { randomFraction, seededRandom, type Random } from '@gpuwhisk/common/system/random';
import type { InterferenceRow, InterferenceSet } from '../data/interference.js';

/** Rows to learn from, and rows to be judged by. */
export interface Fold {
  train: readonly InterferenceRow[];
  test: readonly InterferenceRow[];
}

/** Part of a set that is learned from. */
export const trainFraction = 0.2;
/** Seeds of a split: numbers from 0. */
export const splitSeeds = 10;

/** The folds of one seed. */
export type Split = (set: InterferenceSet, seed: number) => Fold[];

/** Every kind of split by its name in the metrics. */
export const splits = {
  /** The rows of a pair stay together: a fifth of the pairs is learned from, the others are unseen. */
  pair(set, seed) {
    const chosen = drawPairs(set.rows, pairCount(set), seededRandom(seed));
    return [divide(set.rows, ({ pair }) => chosen.has(pair))];
  },
  /** A fifth of the rows, whichever: the other side of a pair, or other shares of it, may have been seen. */
  random(set, seed) {
    const order = shuffled(set.rows, seededRandom(seed));
    const count = Math.round(set.rows.length * trainFraction);
    return [{ train: order.slice(0, count), test: order.slice(count) }];
  },
  /** All rows with one workload are unseen: two workloads for each seed, of which none recurs before all had their turn. */
  workload(set, seed) {
    const workloads = [...new Set(set.rows.map(({ workload }) => workload))].sort();
    const order = shuffled(workloads, seededRandom(workloads.length));
    return [2 * seed, 2 * seed + 1].map((turn) => {
      const out = order[turn % order.length]!;
      const has = (row: InterferenceRow): boolean => row.workload === out || row.neighbour === out;
      return leaveOut(set, has, seededRandom(seed));
    });
  },
  /** FaaShare, section IX-F: all rows of memory-bound, of compute-bound, or of mixed pairs are unseen. */
  pattern(set, seed) {
    return (['memory', 'mixed', 'compute'] as const)
      .map((out) => leaveOut(set, ({ pattern }) => pattern === out, seededRandom(seed)))
      .filter(({ train, test }) => train.length > 0 && test.length > 0);
  },
} satisfies Record<string, Split>;

/** As many pairs as the split by pair learns from, of those that `out` leaves. */
function leaveOut(set: InterferenceSet, out: (row: InterferenceRow) => boolean, random: Random): Fold {
  const kept = set.rows.filter((row) => !out(row));
  const chosen = drawPairs(kept, pairCount(set), random);
  return { train: kept.filter(({ pair }) => chosen.has(pair)), test: set.rows.filter(out) };
}

function pairCount(set: InterferenceSet): number {
  return Math.max(1, Math.round(new Set(set.rows.map(({ pair }) => pair)).size * trainFraction));
}

function drawPairs(rows: readonly InterferenceRow[], count: number, random: Random): Set<string> {
  return new Set(shuffled([...new Set(rows.map(({ pair }) => pair))], random).slice(0, count));
}

function divide(rows: readonly InterferenceRow[], learned: (row: InterferenceRow) => boolean): Fold {
  return { train: rows.filter(learned), test: rows.filter((row) => !learned(row)) };
}

/** A copy in random order. */
export function shuffled<T>(items: readonly T[], random: Random): T[] {
  const order = [...items];
  for (let i = order.length - 1; i > 0; i -= 1) {
    const j = Math.floor(randomFraction(random) * (i + 1));
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
}
