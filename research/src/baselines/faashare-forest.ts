// FaaShare's random forest as the paper describes it: splits by mean absolute error.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- heap places run below the count */
import type { ForestOptions } from '@gpuwhisk/gpu/predict/forest';
import type { Impurity } from '@gpuwhisk/gpu/predict/split-search';

/** FaaShare, section V: 100 trees, depth 12, on bootstrap samples, split by mean absolute error. */
export const faashareForest: Omit<ForestOptions, 'seed'> = {
  trees: 100,
  maxDepth: 12,
  minLeaf: 1,
  impurity: absolute,
  featureFraction: 1,
  bootstrap: true,
  thresholds: 'best',
};

/** Absolute distances to the median of at most `capacity` values. */
function absolute(capacity: number): Impurity {
  const values = new RunningMedian(capacity);
  return {
    reset: () => values.reset(),
    push: (target) => values.push(target),
    loss: () => values.deviation(),
    centre: () => values.median(),
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
