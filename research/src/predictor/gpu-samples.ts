// Errors of the predictors on the samples of a GPU.
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { leastPairs, pairDegradation, trainPairModel, type PairSample } from '@gpuwhisk/gpu/predict/pair-degradation';
import { SmoreDegradation } from '@gpuwhisk/gpu/predict/smore-degradation';
import { leastSamples, modelPredictor, trainModel } from '@gpuwhisk/gpu/predict/slowdown-model';
import { capacityModel } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { Measurement } from '@gpuwhisk/bench/bench';
import { degradationSets, slowdownRows, type SampleSet } from '@gpuwhisk/bench/gpu/samples';
import { meanOf, median, percentile } from '@gpuwhisk/bench/statistics';

/** Each item is judged once, by a model of the other four fifths. */
const folds = 5;

/** Name of a set in the metrics; that of the stand-in ends with `-simulated` before the mode. */
const nameOf = ({ gpuType, mode }: SampleSet): string => `${gpuType}.${mode}`;

/**
 * FaaShare's predictor learns the set and is judged by it, in five folds that keep the runs of equal sets together:
 * `predictorError` is the mean of |predicted / measured − 1|, beside that of the capacity model and of the median.
 * `pairRmsle` is the same for SMORE's predictor of pairs, and `placeRmsle` of three and more by a model of all pairs. What
 * has too few samples is left out, and `say` told so.
 */
export function sampleErrors(set: SampleSet, seed: number, say: (line: string) => void): Measurement[] {
  return [...slowdownErrors(set, seed, say), ...degradationErrors(set, seed, say)];
}

function slowdownErrors(set: SampleSet, seed: number, say: (line: string) => void): Measurement[] {
  const name = nameOf(set);
  const { rows, skipped } = slowdownRows(set);
  say(`  ${name}: ${rows.length} runs to learn from, ${skipped} without activity or slowdown`);
  const errors: Record<'' | 'Capacity' | 'Median', number[]> = { '': [], Capacity: [], Median: [] };
  for (const { train, test } of foldsOf(rows, ({ id }) => id.replace(/#\d+$/, ''), seed)) {
    if (train.length < leastSamples) continue;
    const samples = train.map(({ sample }) => sample);
    const { gpuType, mode } = set;
    const ours = modelPredictor(trainModel({ gpuType, mode }, samples, { version: 1, seed }));
    const middle = median(samples.map(({ slowdown }) => slowdown));
    for (const { sample } of test) {
      const { one, others, slowdown } = sample;
      errors[''].push(Math.abs(ours.slowdown(one, others) / slowdown - 1));
      errors.Capacity.push(Math.abs(capacityModel.slowdown(one, others) / slowdown - 1));
      errors.Median.push(Math.abs(middle / slowdown - 1));
    }
  }
  if (errors[''].length === 0) {
    say(`  ${name}: fewer than ${leastSamples} runs in a fold, so that no slowdown is predicted`);
    return [];
  }
  return [
    ...Object.entries(errors).map(([of, values]) => ({ name: `predictorError${of}.${name}`, value: meanOf(values) })),
    { name: `predictorErrorP95.${name}`, value: percentile(errors[''], 95) },
    { name: `predictorRuns.${name}`, value: errors[''].length },
  ];
}

function degradationErrors(set: SampleSet, seed: number, say: (line: string) => void): Measurement[] {
  const name = nameOf(set);
  const { gpuType, mode } = set;
  const { pairs, places } = degradationSets(set);
  const predictor = new SmoreDegradation();
  const squares: number[] = [];
  let learned = 0;
  for (const { victim, neighbour, samples } of pairs) {
    const key = { gpuType, mode, victim, neighbour };
    for (const { train, test } of foldsOf(samples, pairName, seed)) {
      if (train.length < leastPairs) continue;
      const model = trainPairModel(key, train, { version: 1, seed });
      for (const sample of test) {
        const predicted = pairDegradation(model, sample.victim.features, sample.neighbour.features).degradation;
        squares.push(squaredLogError(predicted, sample.degradation));
      }
    }
    if (samples.length < leastPairs) continue;
    predictor.put(trainPairModel(key, samples, { version: 1, seed }));
    learned += samples.length;
  }
  if (squares.length === 0) {
    say(`  ${name}: fewer than ${leastPairs} pairs of a kind in a fold, so that no degradation is predicted`);
    return [];
  }
  const together = places.flatMap(({ place, degradations }) => {
    const predicted = predictor.predict(place);
    return degradations.map(({ degradation }, i) => squaredLogError(predicted[i]?.degradation ?? NaN, degradation));
  });
  return [
    { name: `pairRmsle.${name}`, value: Math.sqrt(meanOf(squares)) },
    { name: `pairs.${name}`, value: learned },
    ...(together.length > 0 ? [{ name: `placeRmsle.${name}`, value: Math.sqrt(meanOf(together)) }] : []),
  ];
}

const pairName = ({ victim, neighbour }: PairSample): string => [victim.model, neighbour.model].sort().join(' + ');

const squaredLogError = (predicted: number, measured: number): number =>
  (Math.log1p(predicted) - Math.log1p(Math.max(0, measured))) ** 2;

/** Items in folds; those of one group are in one fold. */
function foldsOf<Item>(
  items: readonly Item[],
  groupOf: (item: Item) => string,
  seed: number,
): { train: Item[]; test: Item[] }[] {
  const random = seededRandom(seed);
  const order = [...new Set(items.map(groupOf))]
    .map((group) => ({ group, at: randomFraction(random) }))
    .sort((one, other) => one.at - other.at);
  const foldOf = new Map(order.map(({ group }, i) => [group, i % folds]));
  return Array.from({ length: Math.min(folds, order.length) }, (_, fold) => ({
    train: items.filter((item) => foldOf.get(groupOf(item)) !== fold),
    test: items.filter((item) => foldOf.get(groupOf(item)) === fold),
  }));
}
