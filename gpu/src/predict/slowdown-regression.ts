// Regression of slowdowns: the mean of a forest's and a Gaussian process's prediction, with outliers bounded.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- rows have the width of the scaling, and arrays an element for each row */
import { choose } from '../numeric/choose.js';
import { seededRandom, type Random } from '@gpuwhisk/common/system/random';
import { predictForest, trainForest, type Forest, type ForestOptions } from './forest.js';
import { solveUpper, unlikelihood, whitenNoisy, type Whitened } from '../numeric/cholesky.js';

/** Brings features to one scale: mean 0 and standard deviation 1; a feature that does not vary becomes 0. */
export interface Scaling {
  means: Float64Array;
  /** Reciprocals of the standard deviations; 0 for a feature that does not vary. */
  factors: Float64Array;
}

/** The scaling of `rows`. Throws RangeError for no rows. */
export function scalingOf(rows: readonly ArrayLike<number>[]): Scaling {
  if (rows.length === 0) throw new RangeError('There are no rows to take a scale from.');
  const width = rows[0]!.length;
  const means = new Float64Array(width);
  const factors = new Float64Array(width);
  for (let at = 0; at < width; at += 1) {
    const column = rows.map((row) => row[at]!);
    const mean = column.reduce((sum, value) => sum + value, 0) / rows.length;
    const variance = column.reduce((sum, value) => sum + (value - mean) ** 2, 0) / rows.length;
    means[at] = mean;
    factors[at] = Math.sqrt(variance) > 1e-9 * Math.max(1, Math.abs(mean)) ? 1 / Math.sqrt(variance) : 0;
  }
  return { means, factors };
}

/** A row on that scale. */
export function scaled(row: ArrayLike<number>, { means, factors }: Scaling): Float64Array {
  const width = means.length;
  const there = new Float64Array(width);
  for (let at = 0; at < width; at += 1) there[at] = (row[at]! - means[at]!) * factors[at]!;
  return there;
}

/** Square of the distance between two rows. */
export function squaredDistance(one: Float64Array, other: Float64Array): number {
  let squared = 0;
  for (let at = 0; at < one.length; at += 1) squared += (one[at]! - other[at]!) ** 2;
  return squared;
}

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

/** Rows that a prediction is made from: each costs a prediction some 15 ns. */
const mostCentres = 256;
/** Rows that the choice of hyper-parameters looks at, as each candidate costs their cube. */
const mostChoosing = 96;

const lengths = [0.5, 1, 2, 4];
const linears = [0, 0.3, 1];
const noises = [0.003, 0.01, 0.03, 0.1, 0.3];

/**
 * The rational quadratic kernel with α = 2 (Rasmussen and Williams, equation 4.19) of the squared distance in lengths.
 * It takes one division where the Matérn kernels take a root and an exponential, which is most of a prediction.
 */
function bump(squared: number): number {
  const near = 1 / (1 + squared / 4);
  return near * near;
}

/** The mean of a Gaussian process: a plane and a bump at each centre. */
export interface SmoothRegression {
  scaling: Scaling;
  mean: number;
  /** Slopes of the plane, by scaled feature. */
  slopes: Float64Array;
  /** What turns scaled features into coordinates of the centres: one over twice the distance in which a bump fades. */
  shrink: number;
  /** Scaled rows in these coordinates, one after the other. */
  centres: Float64Array;
  /** One plus the square of each centre's distance from the origin. */
  norms: Float64Array;
  /** Height of the bump at each centre. */
  heights: Float64Array;
}

interface Hyper {
  length: number;
  /** Variance of the plane, and of the noise, relative to that of the bumps. */
  linear: number;
  noise: number;
}

/**
 * Gaussian process regression with a rational quadratic and a linear kernel (Rasmussen and Williams, algorithm 2.1). Length,
 * slope and noise are the likeliest of a grid given the rows; the scale follows in closed form. Of more than 256 rows a
 * random choice is used. Throws RangeError for no rows.
 */
export function fitSmooth(
  rows: readonly ArrayLike<number>[],
  targets: ArrayLike<number>,
  random: Random,
): SmoothRegression {
  if (rows.length === 0) throw new RangeError('A regression needs at least one row.');
  const chosen = choose(rows.length, mostCentres, random);
  const scaling = scalingOf(chosen.map((i) => rows[i]!));
  const centres = chosen.map((i) => scaled(rows[i]!, scaling));
  const values = Float64Array.from(chosen, (i) => targets[i]!);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const off = values.map((value) => value - mean);
  const hyper = likeliest(centres.slice(0, mostChoosing), off.slice(0, mostChoosing));
  const nearness = nearnessOf(centres);
  const bumps = nearness.squared.map((squared) => bump(squared / hyper.length ** 2));
  const { lower, values: heights } = conditioned(nearness, bumps, off, hyper);
  solveUpper(lower, heights);
  const width = scaling.means.length;
  const slopes = new Float64Array(width);
  centres.forEach((centre, i) => {
    for (let at = 0; at < width; at += 1) slopes[at]! += (hyper.linear / width) * heights[i]! * centre[at]!;
  });
  const flat = new Float64Array(centres.length * width);
  const shrink = 1 / (2 * hyper.length * Math.sqrt(width));
  centres.forEach((centre, i) =>
    flat.set(
      centre.map((value) => value * shrink),
      i * width,
    ),
  );
  const norms = heights.map((_, i) => flat.subarray(i * width, (i + 1) * width).reduce((sum, x) => sum + x * x, 1));
  return { scaling, mean, slopes, shrink, centres: flat, norms, heights };
}

/**
 * What the regression says of `x`. A feature that is no number counts as the mean of those seen, and one further from
 * it than four standard deviations as that far: a plane says nothing so far off.
 */
export function predictSmooth(smooth: SmoothRegression, x: ArrayLike<number>): number {
  const { scaling, slopes, shrink, centres, norms, heights } = smooth;
  const width = slopes.length;
  const point = scaled(x, scaling);
  let sum = smooth.mean;
  let norm = 0;
  for (let at = 0; at < width; at += 1) {
    const here = Number.isNaN(point[at]!) ? 0 : Math.min(Math.max(point[at]!, -4), 4);
    sum += slopes[at]! * here;
    norm += (here * shrink) ** 2;
    point[at] = -2 * here * shrink;
  }
  // As |c - p|² = |c|² - 2cp + |p|², a centre costs a product a feature and one division.
  for (let i = 0, from = 0; i < heights.length; i += 1, from += width) {
    let far = norms[i]! + norm;
    for (let at = 0; at < width; at += 1) far += centres[from + at]! * point[at]!;
    sum += heights[i]! / (far * far);
  }
  return sum;
}

/** What the covariances of rows under all hyper-parameters are made of, element by element. */
interface Nearness {
  /** Squares of the distances. */
  squared: Float64Array;
  products: Float64Array;
}

/** Both are per feature, so that a length or a slope means the same for few and many. */
function nearnessOf(centres: readonly Float64Array[]): Nearness {
  const size = centres.length;
  const width = centres[0]!.length;
  const squared = new Float64Array(size * size);
  const products = new Float64Array(size * size);
  for (let row = 0; row < size; row += 1) {
    for (let column = 0; column <= row; column += 1) {
      const [one, other] = [centres[row]!, centres[column]!];
      let product = 0;
      for (let at = 0; at < width; at += 1) product += one[at]! * other[at]!;
      const [there, back] = [row * size + column, column * size + row];
      squared[there] = squared[back] = squaredDistance(one, other) / width;
      products[there] = products[back] = product / width;
    }
  }
  return { squared, products };
}

function likeliest(centres: readonly Float64Array[], off: Float64Array): Hyper {
  const nearness = nearnessOf(centres);
  let best: Hyper | undefined;
  let least = Infinity;
  for (const length of lengths) {
    const bumps = nearness.squared.map((squared) => bump(squared / length ** 2));
    for (const linear of linears) {
      for (const noise of noises) {
        const unlikely = unlikelihood(conditioned(nearness, bumps, off, { linear, noise }));
        if (best === undefined || unlikely < least) [best, least] = [{ length, linear, noise }, unlikely];
      }
    }
  }
  return best!;
}

/** The rows' targets under some hyper-parameters. */
function conditioned(
  { products }: Nearness,
  bumps: Float64Array,
  off: Float64Array,
  { linear, noise }: Pick<Hyper, 'linear' | 'noise'>,
): Whitened {
  const covariance = bumps.map((bump, at) => bump + linear * products[at]!);
  return whitenNoisy(covariance, off, noise);
}
