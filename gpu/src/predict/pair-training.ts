// Training of pair models in a thread, and their judgement beside the predictions that they would replace.
import type { JsonValue } from '@gpuwhisk/common/json';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import {
  figuresDegradation,
  pairDegradation,
  trainPairModel,
  unknownDegradation,
  type PairModel,
  type PairModelKey,
  type PairSample,
} from './pair-degradation.js';
import { encodePairModel, type PairModelDocument } from './pair-model-codec.js';

/** Input of a training. */
export interface PairTrainingInput extends PairModelKey {
  /** Version of the model. */
  version: number;
  seed: number;
  samples: readonly PairSample[];
}

/** Errors of predictions of D: root mean square of differences of log(1 + D) (equation 3.3), and mean absolute difference. */
export interface PairErrors {
  rmsle: number;
  mae: number;
}

/** Errors on pairs that a model has not seen, of the model and of what predicts without it. */
export interface PairJudgement {
  /** Samples that were predicted by a model without them. */
  judged: number;
  model: PairErrors;
  /** By the figures of both sides alone. */
  figures: PairErrors;
  /** The mean of the samples that the model was trained on. */
  constant: PairErrors;
}

/** Output of a training. */
export interface PairTrainingOutput {
  model: PairModelDocument;
  /** Absent: too few samples could be left out. */
  judgement?: PairJudgement;
}

/**
 * Fewest samples of one set of features to train on: of 25, a tenth of the pairs may be left out, and the 20 samples that a
 * model takes remain. Each direction of a pair counts: six functions have 30.
 */
export const leastTrainingPairs = 25;

/** Parts of the cross-validation: more where few samples leave little to learn from. */
const [fewSamples, foldsOfFew, foldsOfMany] = [100, 10, 5];

/** This module, for a thread of its own. */
export const pairTrainingModule = new URL(import.meta.url);

/**
 * Learns a pair model and judges it by a cross-validation in which both directions of a pair are left out together. Throws
 * RangeError for too few samples.
 */
export function trainAndJudgePairs(input: PairTrainingInput): PairTrainingOutput {
  const { version, seed, samples } = input;
  const model = trainPairModel(input, samples, { version, seed });
  const judgement = judge(input, model);
  return { model: encodePairModel(model), ...(judgement && { judgement }) };
}

function judge(input: PairTrainingInput, model: PairModel): PairJudgement | undefined {
  const { version, seed, samples } = input;
  const seen = { model: new Errors(), figures: new Errors(), constant: new Errors() };
  // Each regression is chosen once, so that a fold takes the time of a fit.
  const kinds = [...new Set(model.parts.map(({ regression }) => regression.kind))];
  for (const { inside, outside } of foldsOf(samples, seed)) {
    let part: PairModel;
    try {
      part = trainPairModel(input, inside, { version, seed, kinds });
    } catch (error) {
      // The samples that are left have no set of features in common often enough.
      if (error instanceof RangeError) continue;
      throw error;
    }
    const mean = Math.expm1(part.mean);
    for (const { victim, neighbour, degradation } of outside) {
      const truth = Math.max(0, degradation);
      const figures = figuresDegradation(victim.features, neighbour.features) ?? unknownDegradation;
      const { degradation: predicted, basis } = pairDegradation(part, victim.features, neighbour.features);
      seen.model.add(basis === 'mean' ? figures : predicted, truth);
      seen.figures.add(figures, truth);
      seen.constant.add(mean, truth);
    }
  }
  const { count: judged } = seen.model;
  if (2 * judged < samples.length) return undefined;
  return { judged, model: seen.model.means(), figures: seen.figures.means(), constant: seen.constant.means() };
}

/** Sums of errors. */
class Errors {
  count = 0;
  private squares = 0;
  private distances = 0;

  add(predicted: number, truth: number): void {
    this.count += 1;
    this.squares += (Math.log1p(predicted) - Math.log1p(truth)) ** 2;
    this.distances += Math.abs(predicted - truth);
  }

  means(): PairErrors {
    return { rmsle: Math.sqrt(this.squares / this.count), mae: this.distances / this.count };
  }
}

/** Splits samples by pairs, drawn at random: all samples of two names are in one part. */
function foldsOf(samples: readonly PairSample[], seed: number): { inside: PairSample[]; outside: PairSample[] }[] {
  const random = seededRandom(seed);
  const pairs = samples.map(({ victim, neighbour }) => JSON.stringify([victim.model, neighbour.model].sort()));
  const drawn = [...new Set(pairs)].map((pair) => ({ pair, at: randomFraction(random) }));
  drawn.sort((one, other) => one.at - other.at);
  const folds = Math.min(drawn.length, samples.length < fewSamples ? foldsOfFew : foldsOfMany);
  const foldOf = new Map(drawn.map(({ pair }, at) => [pair, at % folds]));
  return Array.from({ length: folds }, (_, fold) => ({
    inside: samples.filter((__, at) => foldOf.get(pairs[at] ?? '') !== fold),
    outside: samples.filter((__, at) => foldOf.get(pairs[at] ?? '') === fold),
  }));
}

/** The same for messages between threads. */
export default function train(input: JsonValue): JsonValue {
  return trainAndJudgePairs(input as unknown as PairTrainingInput) as unknown as JsonValue;
}
