import { faashareForest, predictForest, trainForest } from '@gpuwhisk/gpu/predict/forest';
import { scaled, scalingOf, squaredDistance } from '@gpuwhisk/gpu/numeric/scaling';
import { fitSlowdowns, predictSlowdown } from '@gpuwhisk/gpu/predict/slowdown-regression';
import type { InterferenceRow } from '../data/interference.js';
import { median } from '../statistics.js';
import { fitRidge } from './ridge.js';

/** Predicts the slowdown of a row. */
export type Predict = (features: Float64Array) => number;

/** Learns from rows; the seed is of whatever it draws. */
export type Learner = (rows: readonly InterferenceRow[], seed: number) => Predict;

const slowdownsOf = (rows: readonly InterferenceRow[]): number[] => rows.map(({ slowdown }) => slowdown);

/** Ours and what it is measured against: all get the same rows and features. */
export const learners = {
  /** What the platform ships. */
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
  /** The median: of all constants the one with the least absolute error on its rows. */
  constant(rows) {
    const middle = median(slowdownsOf(rows));
    return () => middle;
  },
} satisfies Record<string, Learner>;
