import { seededRandom } from '@gpuwhisk/common/system/random';
import { scaled, scalingOf } from '../numeric/scaling.js';
import { predictForest, trainForest, type Forest, type ForestOptions } from './forest.js';
import { boundOutliers } from './bound-outliers.js';
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
