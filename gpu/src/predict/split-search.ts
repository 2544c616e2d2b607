// The best split of a node of a regression tree, by the loss that an impurity tells.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- members are indices of the columns of a table */
import { randomFraction, type Random } from '@gpuwhisk/common/system/random';

/** A question that divides samples: is the feature at most the threshold? */
export interface Split {
  feature: number;
  threshold: number;
  /** Loss of the two sides together. */
  loss: number;
}

/** Samples by columns. */
export interface SampleTable {
  count: number;
  /** One column a feature; in single precision, as thresholds are stored. */
  columns: readonly Float32Array[];
  targets: Float64Array;
}

/**
 * Finds the best division of some samples by one feature, or undefined where none leaves `minLeaf` samples on each
 * side. `members` are sample numbers, and may repeat.
 */
export type SplitSearch = (members: Int32Array, feature: number) => Split | undefined;

/**
 * Tries every threshold between two neighbouring values. Samples are put in order by sorting numbers that hold the
 * rank of the value and the place in `members`, which needs no call per comparison; losses of all prefixes and
 * suffixes are then read off two passes, O(n log n) in all.
 */
export function bestSplits(table: SampleTable, newImpurity: NewImpurity, minLeaf: number): SplitSearch {
  const ranks = table.columns.map(denseRanks);
  const keys = new Float64Array(table.count);
  const before = new Float64Array(table.count);
  const side = newImpurity(table.count);
  return (members, feature) => {
    const column = table.columns[feature]!;
    const rank = ranks[feature]!;
    const count = members.length;
    const order = keys.subarray(0, count);
    let varies = false;
    for (let i = 0; i < count; i += 1) {
      const own = rank[members[i]!]!;
      varies ||= own !== rank[members[0]!];
      order[i] = own * table.count + i;
    }
    if (!varies) return undefined;
    order.sort();
    const sampleAt = (i: number): number => members[order[i]! % table.count]!;
    side.reset();
    for (let i = 0; i < count; i += 1) {
      // Losses are needed between different values only.
      if (i > 0 && rank[sampleAt(i)] !== rank[sampleAt(i - 1)]) before[i] = side.loss();
      side.push(table.targets[sampleAt(i)]!);
    }
    side.reset();
    let best: Split | undefined;
    for (let i = count - 1; i >= minLeaf; i -= 1) {
      side.push(table.targets[sampleAt(i)]!);
      const [low, high] = [column[sampleAt(i - 1)]!, column[sampleAt(i)]!];
      if (low === high || count - i < minLeaf) continue;
      const loss = before[i]! + side.loss();
      if (best && loss >= best.loss) continue;
      const middle = Math.fround(low + (high - low) / 2);
      best = { feature, threshold: middle < high ? middle : low, loss };
    }
    return best;
  };
}

/** Tries one threshold, drawn between the least and the greatest value (Geurts et al., Extremely randomized trees). */
export function randomSplits(
  table: SampleTable,
  newImpurity: NewImpurity,
  minLeaf: number,
  random: Random,
): SplitSearch {
  const left = newImpurity(table.count);
  const right = newImpurity(table.count);
  return (members, feature) => {
    const column = table.columns[feature]!;
    let low = Infinity;
    let high = -Infinity;
    for (const member of members) {
      const value = column[member]!;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (!(low < high)) return undefined;
    const drawn = Math.fround(low + (high - low) * randomFraction(random));
    const threshold = drawn < high ? drawn : low;
    left.reset();
    right.reset();
    let leftCount = 0;
    for (const member of members) {
      const goesLeft = column[member]! <= threshold;
      (goesLeft ? left : right).push(table.targets[member]!);
      if (goesLeft) leftCount += 1;
    }
    if (leftCount < minLeaf || members.length - leftCount < minLeaf) return undefined;
    return { feature, threshold, loss: left.loss() + right.loss() };
  };
}

/** For every value how many distinct ones are smaller. */
function denseRanks(column: Float32Array): Int32Array {
  const distinct = [...new Set(column.slice().sort())];
  const rankOf = new Map(distinct.map((value, rank) => [value, rank]));
  return Int32Array.from(column, (value) => rankOf.get(value)!);
}

/** How badly one value stands for many: what a tree minimises. */
export interface Impurity {
  /** Forgets all values. */
  reset(): void;
  push(target: number): void;
  /** The loss of the values pushed. */
  loss(): number;
  /** The value with the least loss. */
  centre(): number;
}

/** An empty impurity for at most `capacity` values. */
export type NewImpurity = (capacity: number) => Impurity;

/** Squared distances to the mean, by Welford's running variance: no cancellation where values are large and close to each other. */
export function squared(): Impurity {
  let count = 0;
  let mean = 0;
  let loss = 0;
  return {
    reset() {
      count = 0;
      mean = 0;
      loss = 0;
    },
    push(target) {
      count += 1;
      const off = target - mean;
      mean += off / count;
      loss += off * (target - mean);
    },
    loss: () => loss,
    centre: () => (count === 0 ? NaN : mean),
  };
}
