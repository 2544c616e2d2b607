/* eslint-disable @typescript-eslint/no-non-null-assertion -- indices are below the number of items, jobs or sets of jobs. */
import { seededRandom, shuffled, type Random } from '@gpuwhisk/common/system/random';
import type { InterferenceRow, InterferenceSet } from '../data/interference.js';
import type { Predict } from './learners.js';

/** Rows for training, and rows for evaluation. */
export interface Fold {
  train: readonly InterferenceRow[];
  test: readonly InterferenceRow[];
}

/** Fraction of a set that is used for training. */
export const trainFraction = 0.2;
/** Seeds of a split: numbers from 0. */
export const splitSeeds = 10;

/** The folds of one seed. */
type Split = (set: InterferenceSet, seed: number) => Fold[];

/** Every kind of split by its name in the metrics. */
export const splits = {
  /** The rows of a pair stay together: a fifth of the pairs is for training, the others are unseen. */
  pair(set, seed) {
    const chosen = drawPairs(set.rows, pairCount(set), seededRandom(seed));
    return [divide(set.rows, ({ pair }) => chosen.has(pair))];
  },
  /** A fifth of the rows at random: the other side of a pair, or other shares of it, may be in the training rows. */
  random(set, seed) {
    const order = shuffled(set.rows, seededRandom(seed));
    const count = Math.round(set.rows.length * trainFraction);
    return [{ train: order.slice(0, count), test: order.slice(count) }];
  },
  /** All rows with one workload are unseen; two workloads a seed, and none recurs before all have been left out. */
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

/** As many pairs for training as the split by pair uses, from those that `out` does not exclude. */
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

/** Jobs that are divided into pairs: few, so that the best division can be found by exhaustive search. */
const jobsPerDraw = 12;
const drawsPerSeed = 20;

/** One way in which two jobs can share a GPU; a pair that was measured with several shares has several. */
type Together = readonly [InterferenceRow, InterferenceRow];

/**
 * Loss of throughput from choosing partners by predictions. Twelve random workloads are divided into pairs with the
 * greatest predicted sum of throughputs, each relative to the workload alone. The loss is one minus the measured sum
 * for these pairs over the greatest measured sum of any division. Two workloads that were not measured together take
 * turns: each has half of its throughput, which every predictor knows.
 */
export function choiceLosses(set: InterferenceSet, predict: Predict, seed: number): number[] {
  const together = byPair(set);
  const workloads = [...new Set(set.rows.map(({ workload }) => workload))].sort();
  const random = seededRandom(seed);
  return Array.from({ length: drawsPerSeed }, () => {
    const jobs = shuffled(workloads, random).slice(0, jobsPerDraw);
    const even = jobs.slice(0, jobs.length & ~1);
    const options = even.map((one) => even.map((other) => together.get(pairName(one, other)) ?? []));
    const measured = (way: Together): number => way.reduce((sum, { slowdown }) => sum + 1 / slowdown, 0);
    const predicted = (way: Together): number => way.reduce((sum, { features }) => sum + 1 / predict(features), 0);
    const chosen = bestPairs(options, predicted);
    const best = bestPairs(options, measured);
    const sum = (ways: readonly (Together | undefined)[]): number =>
      ways.reduce((total, way) => total + (way ? measured(way) : 1), 0);
    return 1 - sum(chosen) / sum(best);
  });
}

const pairName = (one: string, other: string): string => [one, other].sort().join(' + ');

function byPair(set: InterferenceSet): Map<string, Together[]> {
  const sides = new Map<number, InterferenceRow[]>();
  for (const row of set.rows) sides.set(row.measurement, [...(sides.get(row.measurement) ?? []), row]);
  const ways = new Map<string, Together[]>();
  for (const [one, other] of sides.values()) {
    if (!one || !other) throw new Error('A measurement of a pair has two sides.');
    ways.set(one.pair, [...(ways.get(one.pair) ?? []), [one, other]]);
  }
  return ways;
}

/**
 * The division of jobs into pairs with the greatest sum, by dynamic programming over the sets of remaining jobs. Each
 * pair has its best way to share a GPU, or undefined if the jobs take turns (worth 1).
 */
function bestPairs(
  options: readonly (readonly Together[])[][],
  worth: (way: Together) => number,
): (Together | undefined)[] {
  const count = options.length;
  const best = options.map((row) =>
    row.map((ways) => {
      let choice: { way: Together | undefined; worth: number } = { way: undefined, worth: 1 };
      for (const way of ways) if (worth(way) > choice.worth) choice = { way, worth: worth(way) };
      return choice;
    }),
  );
  const totals = new Float64Array(1 << count);
  const partners = new Int8Array(1 << count);
  for (let left = 1; left < 1 << count; left += 1) {
    const first = 31 - Math.clz32(left & -left);
    totals[left] = -Infinity;
    for (let other = first + 1; other < count; other += 1) {
      if ((left & (1 << other)) === 0) continue;
      const total = best[first]![other]!.worth + totals[left & ~(1 << first) & ~(1 << other)]!;
      if (total > totals[left]!) {
        totals[left] = total;
        partners[left] = other;
      }
    }
  }
  const ways: (Together | undefined)[] = [];
  for (let left = (1 << count) - 1; left !== 0;) {
    const first = 31 - Math.clz32(left & -left);
    const other = partners[left]!;
    ways.push(best[first]![other]!.way);
    left &= ~(1 << first) & ~(1 << other);
  }
  return ways;
}
