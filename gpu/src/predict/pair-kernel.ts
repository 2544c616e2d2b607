// A Gaussian process over pairs: each side has a kernel, and their sum and product are that of the pair.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- indices run below the numbers of rows, distinct sides and features of a side */
import { choose } from '../numeric/choose.js';
import type { Random } from '@gpuwhisk/common/system/random';
import { solveUpper, unlikelihood, whitenNoisy } from '../numeric/cholesky.js';
import { scaled, scalingOf, squaredDistance, type Scaling } from './slowdown-regression.js';

/**
 * The mean of a Gaussian process with the kernel k(a, a') + k(b, b') + product·k(a, a')·k(b, b') for own sides a and other
 * sides b: what a side suffers from all others, what it does to all others, and what is particular to the two. k is the
 * rational quadratic kernel with α = 2 (Rasmussen and Williams, equation 4.19).
 */
export interface PairKernel {
  /** Of a side's features; the same for both. */
  scaling: Scaling;
  mean: number;
  product: number;
  /** Turns scaled features into coordinates: one over twice the distance in which k fades. */
  shrink: number;
  /** Distinct own and other sides in these coordinates, one after the other. */
  own: Float64Array;
  other: Float64Array;
  /** The sides of each row, as indices of these. */
  ownOf: Int32Array;
  otherOf: Int32Array;
  /** Weight of each row. */
  heights: Float64Array;
}

/** Rows that a prediction is made from: each costs a prediction some 2 ns, and its two sides up to 40. */
export const mostCentres = 256;
/** Rows that hyper-parameters are chosen by, as each candidate costs their cube. */
const mostChoosing = 128;

const lengths = [0.25, 0.5, 1, 2];
const products = [0.3, 1, 3];
const noises = [0.03, 0.1, 0.3, 1];

/** k, of the squared distance in coordinates. */
function nearness(squared: number): number {
  const near = 1 / (1 + squared);
  return near * near;
}

/**
 * Gaussian process regression (Rasmussen and Williams, algorithm 2.1). Length, product and noise are the likeliest of a grid;
 * the scale follows in closed form. Of more than 256 rows a random choice is used. Throws RangeError for no rows.
 */
export function fitPairKernel(rows: readonly Float64Array[], targets: ArrayLike<number>, random: Random): PairKernel {
  if (rows.length === 0) throw new RangeError('A regression needs at least one row.');
  const chosen = choose(rows.length, mostCentres, random);
  const width = rows[0]!.length >> 1;
  const owns = chosen.map((i) => rows[i]!.subarray(0, width));
  const others = chosen.map((i) => rows[i]!.subarray(width));
  const scaling = scalingOf([...owns, ...others]);
  const [a, b] = [owns, others].map((sides) => sides.map((side) => scaled(side, scaling))) as [
    Float64Array[],
    Float64Array[],
  ];
  const values = Float64Array.from(chosen, (i) => targets[i]!);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const off = values.map((value) => value - mean);
  const { length, product, noise } = likeliest(
    distances(a.slice(0, mostChoosing)),
    distances(b.slice(0, mostChoosing)),
    off.slice(0, mostChoosing),
  );
  const covariance = covariances(distances(a), distances(b), length, product);
  const { lower, values: heights } = whitenNoisy(covariance, off, noise);
  solveUpper(lower, heights);
  const shrink = 1 / (2 * length * Math.sqrt(width));
  const [own, other] = [distinct(a, shrink), distinct(b, shrink)];
  return {
    scaling,
    mean,
    product,
    shrink,
    own: own.sides,
    other: other.sides,
    ownOf: own.of,
    otherOf: other.of,
    heights,
  };
}

/** What the process predicts for a row of both sides. */
export function predictPairKernel(kernel: PairKernel, row: Float64Array): number {
  const { heights, ownOf, otherOf, product } = kernel;
  nearnesses(kernel, row, 0, kernel.own, nearOwn);
  nearnesses(kernel, row, row.length >> 1, kernel.other, nearOther);
  let sum = kernel.mean;
  for (let i = 0; i < heights.length; i += 1) {
    const a = nearOwn[ownOf[i]!]!;
    const b = nearOther[otherOf[i]!]!;
    sum += heights[i]! * (a + b + product * a * b);
  }
  return sum;
}

/**
 * Coordinates of the side at hand, and its k to own and other sides. Reused: allocated for each call, these and
 * the row of differences took 6 of a prediction's 14 µs (bench smore, `pairUs`, on a busy machine).
 */
let point = new Float64Array(64);
const nearOwn = new Float64Array(mostCentres);
const nearOther = new Float64Array(mostCentres);

/**
 * Sets `near` to k between a side of `row`, from element `from`, and each of `sides`. A feature further than four standard
 * deviations from the mean counts as that far.
 */
function nearnesses(
  { scaling, shrink }: PairKernel,
  row: Float64Array,
  from: number,
  sides: Float64Array,
  near: Float64Array,
): void {
  const { means, factors } = scaling;
  const width = means.length;
  if (point.length < width) point = new Float64Array(width);
  for (let at = 0; at < width; at += 1) {
    const value = (row[from + at]! - means[at]!) * factors[at]!;
    point[at] = (value > 4 ? 4 : value < -4 ? -4 : value) * shrink;
  }
  const count = sides.length / width;
  for (let side = 0, start = 0; side < count; side += 1, start += width) {
    let squared = 0;
    for (let at = 0; at < width; at += 1) {
      const apart = sides[start + at]! - point[at]!;
      squared += apart * apart;
    }
    near[side] = nearness(squared);
  }
}

/** The distinct sides in coordinates, and the index of each row's side. */
function distinct(sides: readonly Float64Array[], shrink: number): { sides: Float64Array; of: Int32Array } {
  const indices = new Map<string, number>();
  const flat: number[] = [];
  const of = Int32Array.from(sides, (side) => {
    const name = side.join();
    const known = indices.get(name);
    if (known !== undefined) return known;
    indices.set(name, indices.size);
    flat.push(...side.map((value) => value * shrink));
    return indices.size - 1;
  });
  return { sides: Float64Array.from(flat), of };
}

/** Squared distances between all sides, per feature, so that a length means the same for few and many. */
function distances(sides: readonly Float64Array[]): Float64Array {
  const size = sides.length;
  const squared = new Float64Array(size * size);
  for (let row = 0; row < size; row += 1) {
    for (let column = 0; column < row; column += 1) {
      const apart = squaredDistance(sides[row]!, sides[column]!) / sides[row]!.length;
      squared[row * size + column] = squared[column * size + row] = apart;
    }
  }
  return squared;
}

function covariances(own: Float64Array, other: Float64Array, length: number, product: number): Float64Array {
  const scale = 1 / (4 * length * length);
  return own.map((squared, at) => {
    const [a, b] = [nearness(squared * scale), nearness(other[at]! * scale)];
    return a + b + product * a * b;
  });
}

function likeliest(
  own: Float64Array,
  other: Float64Array,
  off: Float64Array,
): { length: number; product: number; noise: number } {
  let best = { length: 1, product: 1, noise: 0.1 };
  let least = Infinity;
  for (const length of lengths) {
    for (const product of products) {
      const covariance = covariances(own, other, length, product);
      for (const noise of noises) {
        const unlikely = unlikelihood(whitenNoisy(covariance, off, noise));
        if (unlikely < least) [best, least] = [{ length, product, noise }, unlikely];
      }
    }
  }
  return best;
}
