// Simple predictors of degradation that SMORE's is compared with; all read the rows that it reads.
import {
  featureSets,
  pairRow,
  sideRow,
  typicalSide,
  type FeatureSet,
} from '@gpuwhisk/gpu/predict/degradation-features';
import { pairDegradation, trainPairModel, type PairSample } from '@gpuwhisk/gpu/predict/pair-degradation';
import { fitRidge, type PairRows, type RegressionKind } from '@gpuwhisk/gpu/predict/pair-regression';
import { scaled, scalingOf, squaredDistance } from '@gpuwhisk/gpu/predict/slowdown-regression';

/** Predicts D of a sample from its features. */
type Predict = (sample: PairSample) => number;

/** Learns from samples by one set of features; `seed` seeds its random numbers. */
type Learner = (samples: readonly PairSample[], set: FeatureSet, seed: number) => Predict;

const key = { gpuType: 'bench', mode: 'timeslice', victim: 'workload', neighbour: 'workload' } as const;

const model = (kinds?: readonly RegressionKind[]): Learner => {
  return (samples, set, seed) => {
    const trained = trainPairModel(key, samples, { version: 1, seed, sets: [set], ...(kinds && { kinds }) });
    return ({ victim, neighbour }) => pairDegradation(trained, victim.features, neighbour.features).degradation;
  };
};

/** Learns log(1 + D) of rows, with absent features replaced by means. */
const onRows =
  (learn: (data: PairRows) => (row: Float64Array) => number): Learner =>
  (samples, set) => {
    const sides = samples.map(
      ({ victim, neighbour }) => [sideRow(victim.features, set), sideRow(neighbour.features, set)] as const,
    );
    const typical = typicalSide(sides.flat(), featureSets[set].length);
    const predict = learn({
      rows: sides.map(([own, other]) => pairRow(own, other, typical)),
      targets: Float64Array.from(samples, ({ degradation }) => Math.log1p(Math.max(0, degradation))),
      pairs: samples.map(({ victim, neighbour }) => [victim.model, neighbour.model].sort().join(' + ')),
    });
    return ({ victim, neighbour }) => {
      const row = pairRow(sideRow(victim.features, set), sideRow(neighbour.features, set), typical);
      return Math.expm1(Math.max(0, predict(row)));
    };
  };

/** All predictors by their names in the metrics. */
export const degradationLearners = {
  /** As it ships: the regression is chosen by cross-validation on the training samples. */
  ours: model(),
  forest: model(['forest']),
  bagging: model(['bagging']),
  /** Ridge regression of log(1 + D); its penalty is chosen by cross-validation on the training rows. */
  ridge: onRows((data) => {
    const { scaling, mean, slopes } = fitRidge(data);
    return (row) => scaled(row, scaling).reduce((sum, value, at) => sum + value * (slopes[at] ?? 0), mean);
  }),
  /** Mean log(1 + D) of the three nearest rows by scaled features. */
  nearest3: onRows(({ rows, targets }) => {
    const scaling = scalingOf(rows);
    const known = rows.map((row, i) => ({ at: scaled(row, scaling), target: targets[i] ?? 0 }));
    return (row) => {
      const here = scaled(row, scaling);
      const nearest = known
        .map(({ at, target }) => ({ target, distance: squaredDistance(here, at) }))
        .sort((one, other) => one.distance - other.distance)
        .slice(0, 3);
      return nearest.reduce((sum, { target }) => sum + target, 0) / nearest.length;
    };
  }),
  /** Mean log(1 + D), which of all constants has the least RMSLE on its samples. */
  constant: onRows(({ targets }) => {
    const mean = targets.reduce((sum, target) => sum + target, 0) / targets.length;
    return () => mean;
  }),
} satisfies Record<string, Learner>;

/** Name of a predictor. */
export type DegradationLearner = keyof typeof degradationLearners;

/** Errors on samples that were not learned from. */
export interface DegradationErrors {
  /** Root mean square error of log(1 + D) (equation 3.3). */
  rmsle: number;
  /** Mean absolute error of D. */
  mae: number;
}

/** Errors of `predict` on `samples`; a measured D below 0 counts as 0. */
export function errorsOn(samples: readonly PairSample[], predict: Predict): DegradationErrors {
  let squares = 0;
  let absolute = 0;
  for (const sample of samples) {
    const measured = Math.max(0, sample.degradation);
    const predicted = predict(sample);
    squares += (Math.log1p(predicted) - Math.log1p(measured)) ** 2;
    absolute += Math.abs(predicted - measured);
  }
  return { rmsle: Math.sqrt(squares / samples.length), mae: absolute / samples.length };
}
