// The best split of a node of a regression tree, by absolute or squared error.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- members are indices of the columns of a table, and heap places run below the count */
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
export function bestSplits(table: SampleTable, criterion: Criterion, minLeaf: number): SplitSearch {
  const ranks = table.columns.map(denseRanks);
  const keys = new Float64Array(table.count);
  const before = new Float64Array(table.count);
  const side = newImpurity(criterion, table.count);
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
export function randomSplits(table: SampleTable, criterion: Criterion, minLeaf: number, random: Random): SplitSearch {
  const left = newImpurity(criterion, table.count);
  const right = newImpurity(criterion, table.count);
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

/** What a tree minimises: the sum of absolute distances to the median, or of squared ones to the mean. */
export type Criterion = 'mae' | 'mse';

/** How badly one value stands for many. */
export interface Impurity {
  /** Forgets all values. */
  reset(): void;
  push(target: number): void;
  /** Sum of the distances (`mae`) or their squares (`mse`) of the values pushed. */
  loss(): number;
  /** The value with the least loss: median or mean. */
  centre(): number;
}

/** An empty one for at most `capacity` values. */
export function newImpurity(criterion: Criterion, capacity: number): Impurity {
  return criterion === 'mae' ? absolute(capacity) : squared();
}

function absolute(capacity: number): Impurity {
  const values = new RunningMedian(capacity);
  return {
    reset: () => values.reset(),
    push: (target) => values.push(target),
    loss: () => values.deviation(),
    centre: () => values.median(),
  };
}

/** Welford's running variance: no cancellation where values are large and close to each other. */
function squared(): Impurity {
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

/**
 * The distances of a growing set of values from its median, in O(log n) a value: the lower half in one heap, the upper
 * half in another, and the sum of each.
 *
 *     lower: the greatest on top        upper: the least on top
 *     1 2 3 | 5 8          lower holds as many as upper, or one more
 */
export class RunningMedian {
  /** Negated, so that both heaps have their least on top. */
  private readonly lower: Float64Array;
  private readonly upper: Float64Array;
  private lowerCount = 0;
  private upperCount = 0;
  private lowerSum = 0;
  private upperSum = 0;

  /** Takes at most `capacity` values between two resets. */
  constructor(capacity: number) {
    this.lower = new Float64Array(capacity + 1);
    this.upper = new Float64Array(capacity + 1);
  }

  reset(): void {
    this.lowerCount = 0;
    this.upperCount = 0;
    this.lowerSum = 0;
    this.upperSum = 0;
  }

  push(value: number): void {
    if (this.lowerCount === 0 || value <= -this.lower[0]!) this.addLower(value);
    else this.addUpper(value);
    if (this.lowerCount > this.upperCount + 1) {
      const moved = -take(this.lower, this.lowerCount);
      this.lowerCount -= 1;
      this.lowerSum -= moved;
      this.addUpper(moved);
    } else if (this.upperCount > this.lowerCount) {
      const moved = take(this.upper, this.upperCount);
      this.upperCount -= 1;
      this.upperSum -= moved;
      this.addLower(moved);
    }
  }

  /** The middle value, the mean of the two middle ones for an even count; NaN before the first. */
  median(): number {
    if (this.lowerCount === 0) return NaN;
    return this.lowerCount > this.upperCount ? -this.lower[0]! : (this.upper[0]! - this.lower[0]!) / 2;
  }

  /** Sum over all values of their distance to the median; 0 before the first. */
  deviation(): number {
    if (this.lowerCount === 0) return 0;
    const above = this.upperSum - this.upperCount * this.median();
    return above + this.lowerCount * this.median() - this.lowerSum;
  }

  private addLower(value: number): void {
    put(this.lower, this.lowerCount, -value);
    this.lowerCount += 1;
    this.lowerSum += value;
  }

  private addUpper(value: number): void {
    put(this.upper, this.upperCount, value);
    this.upperCount += 1;
    this.upperSum += value;
  }
}

/** Adds to a heap of `count` values whose least is first. */
function put(heap: Float64Array, count: number, value: number): void {
  let at = count;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (heap[parent]! <= value) break;
    heap[at] = heap[parent]!;
    at = parent;
  }
  heap[at] = value;
}

/** Removes the least of a heap of `count` values. */
function take(heap: Float64Array, count: number): number {
  const least = heap[0]!;
  const value = heap[count - 1]!;
  const left = count - 1;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= left) break;
    if (child + 1 < left && heap[child + 1]! < heap[child]!) child += 1;
    if (heap[child]! >= value) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = value;
  return least;
}
