// Regressions of log(1 + D) on the features of both sides of a pair: forest, bagging, ridge, and a pair-wise kernel.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- rows have twice the width of a side, and arrays an element for each row */
import { randomFraction, seededRandom, type Random } from '@gpuwhisk/common/system/random';
import { cholesky, solveLower, solveUpper } from '../numeric/cholesky.js';
import { featureSets } from './degradation-features.js';
import { predictForest, trainForest, type Forest, type ForestOptions } from './forest.js';
import { fitPairKernel, predictPairKernel, type PairKernel } from './pair-kernel.js';
import { scaled, scalingOf, type Scaling } from './slowdown-regression.js';

/** A plane over scaled features. */
export interface Plane {
  scaling: Scaling;
  mean: number;
  slopes: Float64Array;
}

/**
 * What may be learned. `forest`: trees with drawn thresholds that also read the differences of the sides. `bagging`: trees
 * on bootstrap samples that try every feature. `ridge`: linear, with a penalty. `blend`: the mean of `forest` and a
 * Gaussian process with a pair-wise kernel.
 */
export type PairRegression =
  | { kind: 'forest' | 'bagging'; forest: Forest }
  | { kind: 'ridge'; plane: Plane }
  | { kind: 'blend'; forest: Forest; kernel: PairKernel };

/** Name of a regression. */
export type RegressionKind = PairRegression['kind'];

/** All regressions, in the order in which they are preferred at equal error. */
export const regressionKinds: readonly RegressionKind[] = ['blend', 'forest', 'bagging', 'ridge'];

/** Rows to learn from. */
export interface PairRows {
  /** Own features, then those of the other side. */
  rows: readonly Float64Array[];
  /** log(1 + D), one for each row. */
  targets: Float64Array;
  /** Name of each row's pair; the rows of one pair stay in one fold of a cross-validation. */
  pairs: readonly string[];
}

/** More make a prediction take longer than 10 µs. */
const mostTrees = 60;
const forestOptions: Omit<ForestOptions, 'seed' | 'trees'> = {
  maxDepth: 12,
  minLeaf: 1,
  featureFraction: 0.5,
  bootstrap: false,
  thresholds: 'random',
};
const baggingOptions: Omit<ForestOptions, 'seed' | 'trees'> = {
  ...forestOptions,
  featureFraction: 1,
  bootstrap: true,
  thresholds: 'best',
};

/**
 * Learns one regression: a pure function of its arguments; `trees` are those of a forest. Throws RangeError for no rows or a
 * value that is not finite.
 */
export function fitPairs(kind: RegressionKind, data: PairRows, seed: number, trees = mostTrees): PairRegression {
  switch (kind) {
    case 'bagging':
      return { kind, forest: trainForest(data.rows, data.targets, { ...baggingOptions, trees, seed }) };
    case 'ridge':
      return { kind, plane: fitRidge(data) };
    case 'forest':
      return { kind, forest: differenceForest(data, seed, trees) };
    case 'blend':
      return {
        kind,
        forest: differenceForest(data, seed, trees),
        kernel: fitPairKernel(data.rows, data.targets, seededRandom(seed)),
      };
  }
}

/** For the row of one prediction, for the reason that `pair-kernel.ts` gives. */
const scratch = new Float64Array(3 * featureSets.all.length);

/** log(1 + D) as the regression predicts it for a row; finite for finite rows. */
export function predictPair(regression: PairRegression, row: Float64Array): number {
  switch (regression.kind) {
    case 'bagging':
      return predictForest(regression.forest, row);
    case 'ridge':
      return valueAt(regression.plane, row);
    case 'forest':
      return predictForest(regression.forest, withDifferences(row, scratch));
    case 'blend':
      return (
        (predictForest(regression.forest, withDifferences(row, scratch)) + predictPairKernel(regression.kernel, row)) /
        2
      );
  }
}

/** Elements of the rows that a regression's forest reads, for sides of `width`. */
export const forestWidth = (kind: RegressionKind, width: number): number => (kind === 'bagging' ? 2 : 3) * width;

function differenceForest({ rows, targets }: PairRows, seed: number, trees: number): Forest {
  return trainForest(
    rows.map((row) => withDifferences(row)),
    targets,
    { ...forestOptions, trees, seed },
  );
}

/**
 * Own, other, and own minus other. One threshold on a difference says which side is larger; without it a tree needs a
 * staircase. A linear regression gains nothing from it. On pairs of Gavel's P100 it removes 4 % of the error.
 */
function withDifferences(row: Float64Array, there = new Float64Array(3 * (row.length >> 1))): Float64Array {
  const width = row.length >> 1;
  for (let at = 0; at < width; at += 1) {
    const own = row[at]!;
    const other = row[width + at]!;
    there[at] = own;
    there[width + at] = other;
    there[2 * width + at] = own - other;
  }
  return there;
}

/**
 * Root mean square of predicted minus true log(1 + D), which is the RMSLE of D (equation 3.3), of each way to learn,
 * in a cross-validation of `folds` parts. The rows of a pair stay together. Infinity where the rows are of one pair.
 */
export function crossValidate(
  data: PairRows,
  ways: readonly ((data: PairRows) => (row: Float64Array) => number)[],
  folds: number,
  random: Random,
): number[] {
  const names = [...new Set(data.pairs)];
  for (let i = names.length - 1; i > 0; i -= 1) {
    const j = Math.floor(randomFraction(random) * (i + 1));
    [names[i], names[j]] = [names[j]!, names[i]!];
  }
  const foldOf = new Map(names.map((name, i) => [name, i % folds]));
  const squares = ways.map(() => 0);
  let judged = 0;
  for (let fold = 0; fold < folds; fold += 1) {
    const inside = pick(data, (pair) => foldOf.get(pair) !== fold);
    const outside = pick(data, (pair) => foldOf.get(pair) === fold);
    if (inside.rows.length === 0 || outside.rows.length === 0) continue;
    judged += outside.rows.length;
    ways.forEach((learn, way) => {
      const predict = learn(inside);
      outside.rows.forEach((row, i) => {
        squares[way]! += (Math.max(0, predict(row)) - outside.targets[i]!) ** 2;
      });
    });
  }
  return squares.map((square) => (judged > 0 ? Math.sqrt(square / judged) : Infinity));
}

function pick(data: PairRows, wanted: (pair: string) => boolean): PairRows {
  return pickRows(
    data,
    data.rows.flatMap((_, i) => (wanted(data.pairs[i]!) ? [i] : [])),
  );
}

/** The rows at these indices. */
export function pickRows({ rows, targets, pairs }: PairRows, chosen: readonly number[]): PairRows {
  return {
    rows: chosen.map((i) => rows[i]!),
    targets: Float64Array.from(chosen, (i) => targets[i]!),
    pairs: chosen.map((i) => pairs[i]!),
  };
}

const penalties = [0.01, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000];

/** Ridge regression on scaled features; the penalty is the best of a cross-validation. Throws RangeError for no rows. */
export function fitRidge(data: PairRows): Plane {
  const ways = penalties.map((penalty) => (part: PairRows) => {
    const plane = fitPlane(part, penalty);
    return (row: Float64Array): number => valueAt(plane, row);
  });
  const errors = crossValidate(data, ways, 5, seededRandom(1));
  return fitPlane(data, penalties[errors.indexOf(Math.min(...errors))]!);
}

function valueAt({ scaling, mean, slopes }: Plane, row: Float64Array): number {
  let sum = mean;
  for (let at = 0; at < slopes.length; at += 1) {
    sum += (row[at]! - scaling.means[at]!) * scaling.factors[at]! * slopes[at]!;
  }
  return sum;
}

/** Solves (XᵀX + penalty·I)·slopes = Xᵀy. */
function fitPlane({ rows, targets }: PairRows, penalty: number): Plane {
  const scaling = scalingOf(rows);
  const width = scaling.means.length;
  const mean = targets.reduce((sum, target) => sum + target, 0) / targets.length;
  const normal = new Float64Array(width * width);
  const slopes = new Float64Array(width);
  rows.forEach((row, n) => {
    const x = scaled(row, scaling);
    for (let i = 0; i < width; i += 1) {
      slopes[i]! += x[i]! * (targets[n]! - mean);
      for (let j = 0; j < width; j += 1) normal[i * width + j]! += x[i]! * x[j]!;
    }
  });
  for (let i = 0; i < width; i += 1) normal[i * width + i]! += penalty;
  const lower = cholesky(normal, width);
  solveLower(lower, slopes);
  solveUpper(lower, slopes);
  return { scaling, mean, slopes };
}
