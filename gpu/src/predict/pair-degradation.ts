// SMORE's pair-wise predictor: learning from measured pairs, and predictions (paper, section IV-B; thesis, 3.2.2).
import type { GpuKind } from '@gpuwhisk/common/gpu';
import { seededRandom } from '@gpuwhisk/common/system/random';
import {
  featureFaults,
  featureSetNames,
  featureSets,
  hasSet,
  pairRow,
  sideRow,
  typicalSide,
  type FeatureSet,
} from './degradation-features.js';
import {
  crossValidate,
  fitPairs,
  pickRows,
  predictPair,
  regressionKinds,
  type PairRegression,
  type PairRows,
  type RegressionKind,
} from './pair-regression.js';
import { capacityModel, workloadOf, type FeatureRecord } from './slowdown-predictor.js';

/** Kind of a member of a place: a process that is not ours (training), or an instance of a function. */
export type MemberKind = 'workload' | 'function';

/** What a pair model holds for: a GPU type and mode, and who suffers from which kind of neighbour. */
export interface PairModelKey extends GpuKind {
  victim: MemberKind;
  neighbour: MemberKind;
}

/** A key as text: `a100-40/mps/workload/function`. */
export const pairModelName = ({ gpuType, mode, victim, neighbour }: PairModelKey): string =>
  `${gpuType}/${mode}/${victim}/${neighbour}`;

/** One side of a measured pair. */
export interface PairSide {
  /** Name of its model: equal names have equal features. */
  model: string;
  features: FeatureRecord;
}

/** A measured pair. */
export interface PairSample {
  victim: PairSide;
  neighbour: PairSide;
  /**
   * D of the victim: time together over time alone, less 1 (fraction; may exceed 1). Of a rate: alone over together, less 1.
   */
  degradation: number;
}

/** Samples by what became of them, and features that were ignored. */
export interface PairCounts {
  /** Samples to learn from, clamped ones included. */
  kept: number;
  /** Degradations from −0.5 to 0, taken as 0: noise of the measurement. */
  clamped: number;
  /** Degradations that are NaN, infinite, below −0.5 (the time alone was wrong) or above 1000 (the run was stopped). */
  refused: number;
  /** Samples with a side that no set of features applies to. */
  featureless: number;
  /** Features with a value that is NaN, negative or absurdly great; each counts as absent. */
  ignoredFeatures: number;
}

/** What was learned on one set of features. */
export interface PairPart {
  set: FeatureSet;
  /** Samples that have the set on both sides. */
  sampleCount: number;
  /** Values that stand for absent features: means of the samples, as rows hold them. */
  typical: Float64Array;
  /** Greatest log(1 + D) of the samples: predictions end here, as nothing was measured further away. */
  most: number;
  regression: PairRegression;
  /** RMSLE (equation 3.3) of each regression in a cross-validation by pairs; absent where it was not tried. */
  errors: Partial<Record<RegressionKind, number>>;
}

/** Pair-wise predictor of one key. */
export interface PairModel extends PairModelKey {
  /** Counts the models of this key. */
  version: number;
  seed: number;
  counts: PairCounts;
  /** Mean of log(1 + D): predicted where a side has no set of features. */
  mean: number;
  /** One for each set of features with enough samples, in order of preference. */
  parts: readonly PairPart[];
}

/** Source of a predicted pair: the features that were read, or the mean of the samples where a side has no features. */
export type PairBasis = FeatureSet | 'mean';

/** Degradation of one side of a pair. */
export interface PairPrediction {
  /** D ≥ 0, a fraction. */
  degradation: number;
  basis: PairBasis;
}

/** Fewer samples say less than no model. */
export const leastPairs = 20;
const leastDegradation = -0.5;
const mostDegradation = 1000;

/** Why nothing may be learned from a measured degradation, or undefined where it may. */
export function degradationFault(degradation: number): string | undefined {
  return degradation >= leastDegradation && degradation <= mostDegradation
    ? undefined
    : `a degradation of ${degradation} is not from ${leastDegradation} to ${mostDegradation}`;
}

/** How a model is learned. */
export interface PairTraining {
  version: number;
  /** The same samples and seed give the same model. */
  seed: number;
  /**
   * Regressions to choose from by cross-validation: the first, unless another errs less by 5 %. A single one is taken as it
   * is. All by default.
   */
  kinds?: readonly RegressionKind[];
  /** Sets of features that may be used; all by default. */
  sets?: readonly FeatureSet[];
}

/**
 * Learns log(1 + D) from measured pairs: a pure function of its arguments. For each set of features that at least 20
 * samples have, a regression is chosen by RMSLE in a five-fold cross-validation by pairs and learned from all of them. Samples at
 * fault are counted and left out. Throws RangeError where no set has 20 samples.
 */
export function trainPairModel(key: PairModelKey, samples: readonly PairSample[], options: PairTraining): PairModel {
  const { version, seed, kinds = regressionKinds, sets = featureSetNames } = options;
  const { good, counts } = sift(samples, sets);
  const parts = sets.flatMap((set) => partOf(set, good, kinds, seed) ?? []);
  if (parts.length === 0) {
    throw new RangeError(`A pair model takes ${leastPairs} samples with features, and there are ${good.length}.`);
  }
  const { gpuType, mode, victim, neighbour } = key;
  const mean = good.reduce((sum, { degradation }) => sum + Math.log1p(degradation), 0) / good.length;
  return { gpuType, mode, victim, neighbour, version, seed, counts, mean, parts };
}

/** Samples to learn from, their degradations at least 0, and the counts of all. */
function sift(samples: readonly PairSample[], sets: readonly FeatureSet[]): { good: PairSample[]; counts: PairCounts } {
  const counts = { kept: 0, clamped: 0, refused: 0, featureless: 0, ignoredFeatures: 0 };
  const good: PairSample[] = [];
  for (const sample of samples) {
    const { victim, neighbour, degradation } = sample;
    if (degradationFault(degradation) !== undefined) {
      counts.refused += 1;
      continue;
    }
    counts.ignoredFeatures += featureFaults(victim.features) + featureFaults(neighbour.features);
    if (!sets.some((set) => hasSet(victim.features, set) && hasSet(neighbour.features, set))) {
      counts.featureless += 1;
      continue;
    }
    counts.kept += 1;
    if (degradation < 0) counts.clamped += 1;
    good.push({ victim, neighbour, degradation: Math.max(0, degradation) });
  }
  return { good, counts };
}

function partOf(
  set: FeatureSet,
  samples: readonly PairSample[],
  kinds: readonly RegressionKind[],
  seed: number,
): PairPart | undefined {
  const used = samples.filter(
    ({ victim, neighbour }) => hasSet(victim.features, set) && hasSet(neighbour.features, set),
  );
  if (used.length < leastPairs) return undefined;
  const sides = used.map(
    ({ victim, neighbour }) => [sideRow(victim.features, set), sideRow(neighbour.features, set)] as const,
  );
  const typical = typicalSide(sides.flat(), featureSets[set].length);
  const data: PairRows = {
    rows: sides.map(([own, other]) => pairRow(own, other, typical)),
    targets: Float64Array.from(used, ({ degradation }) => Math.log1p(degradation)),
    pairs: used.map(({ victim, neighbour }) => [victim.model, neighbour.model].sort().join(' + ')),
  };
  const { kind, errors } = chooseKind(data, kinds, seed);
  const most = data.targets.reduce((greatest, target) => Math.max(greatest, target), 0);
  return { set, sampleCount: used.length, typical, most, regression: fitPairs(kind, data, seed), errors };
}

/** Rows, parts and trees of the cross-validation that chooses a regression: they bound the time that learning takes. */
const mostChoosing = 256;
const choiceFolds = 5;
const choiceTrees = 20;
/**
 * Another regression than the first must err less than this fraction of its error. By least error alone, the choice among
 * 92 rows of Gavel's V100 cost 5 % in RMSLE against always taking the blend (15 seeds, 0.295 and 0.280).
 */
const clearlyLess = 0.95;

/** At most `mostChoosing` rows, drawn at random. */
function choosing(data: PairRows, seed: number): PairRows {
  if (data.rows.length <= mostChoosing) return data;
  const random = seededRandom(seed);
  const order = data.rows.map((_, i) => ({ i, at: random.uint32() })).sort((one, other) => one.at - other.at);
  return pickRows(
    data,
    order.slice(0, mostChoosing).map(({ i }) => i),
  );
}

function chooseKind(
  data: PairRows,
  kinds: readonly RegressionKind[],
  seed: number,
): { kind: RegressionKind; errors: PairPart['errors'] } {
  const [first] = kinds;
  if (first === undefined) throw new RangeError('A pair model takes at least one kind of regression.');
  if (kinds.length === 1) return { kind: first, errors: {} };
  const ways = kinds.map((kind) => (part: PairRows) => {
    const regression = fitPairs(kind, part, seed, choiceTrees);
    return (row: Float64Array): number => predictPair(regression, row);
  });
  const found = crossValidate(choosing(data, seed), ways, choiceFolds, seededRandom(seed));
  const least = Math.min(...found);
  const best = least < clearlyLess * (found[0] ?? Infinity) ? (kinds[found.indexOf(least)] ?? first) : first;
  const judged = kinds.flatMap((kind, i) => {
    const error = found[i];
    return error === undefined || !Number.isFinite(error) ? [] : [[kind, error] as const];
  });
  return { kind: best, errors: Object.fromEntries(judged) };
}

/**
 * D of `victim` beside `neighbour` (equation 3.2), from the best set of features that both have and the model knows. Always
 * finite, at least 0, and at most the greatest D that the model was shown.
 */
export function pairDegradation(model: PairModel, victim: FeatureRecord, neighbour: FeatureRecord): PairPrediction {
  for (const { set, typical, most, regression } of model.parts) {
    if (!hasSet(victim, set) || !hasSet(neighbour, set)) continue;
    const predicted = predictPair(regression, pairRow(sideRow(victim, set), sideRow(neighbour, set), typical));
    return { degradation: Math.expm1(predicted > 0 ? Math.min(predicted, most) : 0), basis: set };
  }
  return { degradation: Math.expm1(model.mean), basis: 'mean' };
}

/**
 * D of a victim beside a neighbour by the figures of both alone, without a model: demands that exceed the GPU together make
 * all slower. Undefined where a side has no `smUtil`.
 */
export function figuresDegradation(
  victim: FeatureRecord | undefined,
  neighbour: FeatureRecord | undefined,
): number | undefined {
  const [one, other] = [workloadOf(victim), workloadOf(neighbour)];
  if (one === undefined || other === undefined) return undefined;
  return capacityModel.slowdown({ features: one, share: 1 }, [{ features: other, share: 1 }]) - 1;
}

/** Assumed where figures are missing: two processes that take turns take twice as long. */
export const unknownDegradation = 1;
