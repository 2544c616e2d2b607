/* eslint-disable @typescript-eslint/no-non-null-assertion -- indices are below the width of the features or the number of penalties. */
import { cholesky, solveLower, solveUpper } from '@gpuwhisk/gpu/numeric/cholesky';
import {
  scaled,
  scalingOf,
  squaredDistance,
  type Scaling,
  fitSlowdowns,
  predictSlowdown,
} from '@gpuwhisk/gpu/predict/slowdown-regression';
import { predictForest, trainForest } from '@gpuwhisk/gpu/predict/forest';
import type { InterferenceRow } from '../data/interference.js';
import { median } from '@gpuwhisk/bench/statistics';
import { faashareForest } from '../baselines/faashare-forest.js';

/** Predicts the slowdown of a row. */
export type Predict = (features: Float64Array) => number;

/** Learns from rows; `seed` seeds its random numbers. */
type Learner = (rows: readonly InterferenceRow[], seed: number) => Predict;

const slowdownsOf = (rows: readonly InterferenceRow[]): number[] => rows.map(({ slowdown }) => slowdown);

/** Our predictor and those that it is compared with; all get the same rows and features. */
export const learners = {
  /** The shipped predictor. */
  ours(rows, seed) {
    const regression = fitSlowdowns(
      rows.map(({ features }) => features),
      slowdownsOf(rows),
      seed,
    );
    return (features) => predictSlowdown(regression, features);
  },
  /** FaaShare's forest as the paper describes it. */
  literal(rows, seed) {
    const forest = trainForest(
      rows.map(({ features }) => features),
      slowdownsOf(rows),
      { ...faashareForest, seed },
    );
    return (features) => predictForest(forest, features);
  },
  ridge: (rows) => fitRidge(rows),
  /** The mean of the three nearest rows by scaled features. */
  nearest3(rows) {
    const scaling = scalingOf(rows.map(({ features }) => features));
    const known = rows.map((row) => ({ at: scaled(row.features, scaling), slowdown: row.slowdown }));
    return (features) => {
      const here = scaled(features, scaling);
      const nearest = known
        .map(({ at, slowdown }) => ({ slowdown, distance: squaredDistance(here, at) }))
        .sort((a, b) => a.distance - b.distance)
        .slice(0, 3);
      return nearest.reduce((sum, { slowdown }) => sum + slowdown, 0) / nearest.length;
    };
  },
  /** The median, which of all constants has the least absolute error on its rows. */
  constant(rows) {
    const middle = median(slowdownsOf(rows));
    return () => middle;
  },
} satisfies Record<string, Learner>;

const penalties = [0.01, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000];
const folds = 5;

interface Plane {
  scaling: Scaling;
  mean: number;
  slopes: Float64Array;
}

/**
 * Ridge regression of the slowdown on scaled features. The penalty is the one with the least absolute error in a
 * five-fold cross-validation over the rows given, in which the rows of a pair stay together.
 */
export function fitRidge(rows: readonly InterferenceRow[]): (features: Float64Array) => number {
  const pairs = [...new Set(rows.map(({ pair }) => pair))];
  const foldOf = new Map(pairs.map((pair, i) => [pair, i % folds]));
  const errors = penalties.map(() => 0);
  for (let fold = 0; fold < folds; fold += 1) {
    const inside = rows.filter(({ pair }) => foldOf.get(pair) !== fold);
    const outside = rows.filter(({ pair }) => foldOf.get(pair) === fold);
    if (inside.length === 0) continue;
    penalties.forEach((penalty, i) => {
      const plane = fitPlane(inside, penalty);
      for (const { features, slowdown } of outside) errors[i]! += Math.abs(valueAt(plane, features) - slowdown);
    });
  }
  const plane = fitPlane(rows, penalties[errors.indexOf(Math.min(...errors))]!);
  return (features) => valueAt(plane, features);
}

function valueAt({ scaling, mean, slopes }: Plane, features: Float64Array): number {
  return scaled(features, scaling).reduce((sum, value, at) => sum + value * slopes[at]!, mean);
}

/** Solves (XᵀX + penalty·I)·slopes = Xᵀy. */
function fitPlane(rows: readonly InterferenceRow[], penalty: number): Plane {
  const scaling = scalingOf(rows.map(({ features }) => features));
  const width = scaling.means.length;
  const mean = rows.reduce((sum, { slowdown }) => sum + slowdown, 0) / rows.length;
  const normal = new Float64Array(width * width);
  const slopes = new Float64Array(width);
  for (const { features, slowdown } of rows) {
    const x = scaled(features, scaling);
    for (let i = 0; i < width; i += 1) {
      slopes[i]! += x[i]! * (slowdown - mean);
      for (let j = 0; j < width; j += 1) normal[i * width + j]! += x[i]! * x[j]!;
    }
  }
  for (let i = 0; i < width; i += 1) normal[i * width + i]! += penalty;
  const lower = cholesky(normal, width);
  solveLower(lower, slopes);
  solveUpper(lower, slopes);
  return { scaling, mean, slopes };
}
