import { seededRandom } from '@gpuwhisk/common/system/random';
import { scaled, scalingOf, squaredDistance } from '../numeric/scaling.js';
import { predictForest, trainForest, type Forest, type ForestOptions } from './forest.js';
import { fitSmooth, predictSmooth, type SmoothRegression } from './smooth-regression.js';

/** Two regressions of the logarithm of a slowdown, whose mean is the answer. */
export interface SlowdownRegression {
  forest: Forest;
  smooth: SmoothRegression;
}

/**
 * What the forest differs in from FaaShare's: it sees logarithms, as slowdowns multiply; it draws its thresholds, which
 * errs less where there are few rows for the features; and its leaves hold a mean, as outliers are bounded before.
 */
const forestOptions: Omit<ForestOptions, 'seed'> = {
  trees: 100,
  maxDepth: 12,
  minLeaf: 1,
  criterion: 'mse',
  featureFraction: 0.5,
  bootstrap: false,
  thresholds: 'random',
};

/**
 * Learns slowdowns from rows of features. A forest finds steps and combinations, a Gaussian process what is smooth
 * between them; each errs elsewhere, so that their mean errs less than either. Outliers are bounded. Throws
 * RangeError for no rows, a value that is not finite, or a slowdown that is not positive.
 */
export function fitSlowdowns(
  rows: readonly ArrayLike<number>[],
  slowdowns: ArrayLike<number>,
  seed: number,
): SlowdownRegression {
  const logs = Float64Array.from(slowdowns, (slowdown) => {
    if (!(slowdown > 0)) throw new RangeError(`A slowdown is a positive number, not ${slowdown}.`);
    return Math.log(slowdown);
  });
  const scaling = scalingOf(rows);
  const targets = boundOutliers(
    rows.map((row) => scaled(row, scaling)),
    logs,
  );
  return {
    forest: trainForest(rows, targets, { ...forestOptions, seed }),
    smooth: fitSmooth(rows, targets, seededRandom(seed)),
  };
}

/** The slowdown to be expected at `x`; positive and finite. */
export function predictSlowdown({ forest, smooth }: SlowdownRegression, x: ArrayLike<number>): number {
  return Math.exp((predictForest(forest, x) + predictSmooth(smooth, x)) / 2);
}

const neighbours = 8;
/** Deviations from what the neighbours say that are still believed, in robust standard deviations. */
const believed = 6;
/** Of a normal distribution: standard deviation over the median distance from the median. */
const normalRatio = 1.4826;

/**
 * Targets of which those far from what was measured in much the same place are moved to the edge of what is believed:
 * six robust standard deviations (Hampel's identifier) from the median of the eight nearest rows. What is usual is
 * taken from all rows, so that a set that varies much from row to row keeps its extremes. With fewer than ten rows
 * nothing is moved. O(n²) in the number of rows.
 */
export function boundOutliers(rows: readonly Float64Array[], targets: Float64Array): Float64Array {
  if (rows.length < neighbours + 2) return targets.slice();
  const expected = rows.map((row, i) => medianOfNearest(row, i, rows, targets));
  const distances = targets.map((target, i) => Math.abs(target - expected[i]!));
  const edge = believed * normalRatio * median(distances);
  return targets.map((target, i) => Math.min(Math.max(target, expected[i]! - edge), expected[i]! + edge));
}

function medianOfNearest(
  row: Float64Array,
  self: number,
  rows: readonly Float64Array[],
  targets: Float64Array,
): number {
  const distances = Float64Array.from(rows, (other) => squaredDistance(row, other));
  distances[self] = Infinity;
  // Rows as far as the eighth take part, too: the choice among repeated measurements is not left to their order.
  const reach = distances.slice().sort()[neighbours - 1]!;
  return median(targets.filter((_, i) => distances[i]! <= reach));
}

function median(values: Float64Array): number {
  const sorted = values.slice().sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
