/* eslint-disable @typescript-eslint/no-non-null-assertion -- invented samples have all utilisations, and indices are taken modulo the number of samples. */
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { predictForest, trainForest } from '@gpuwhisk/gpu/predict/forest';
import type { SlowdownSample } from '@gpuwhisk/gpu/predict/samples';
import { modelPredictor, trainModel } from '@gpuwhisk/gpu/predict/slowdown-model';
import { faashareFeatures, type CoLocated } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { medianOf, type Measurement } from '@gpuwhisk/bench/bench';
import type { Bench, BenchContext } from '@gpuwhisk/bench/bench';
import { benchDataDir, BenchDataError } from '@gpuwhisk/bench/data/csv';
import { gavelSet, igniterSet, lucidSet, type InterferenceSet } from '../data/interference.js';
import { readSamples } from '@gpuwhisk/bench/gpu/sample-file';
import { sampleSets } from '@gpuwhisk/bench/gpu/samples';
import { sampleErrors } from '../predictor/gpu-samples.js';
import { learners, type Predict } from '../predictor/learners.js';
import { choiceLosses, splits, splitSeeds, trainFraction, type Fold } from '../predictor/splits.js';
import { median, percentile } from '@gpuwhisk/bench/statistics';
import { faashareForest } from '../baselines/faashare-forest.js';

/** All measured sets. Throws BenchDataError if BENCH_DATA or a file is missing. */
async function measuredSets(): Promise<InterferenceSet[]> {
  const folder = benchDataDir();
  return Promise.all([
    gavelSet('p100', folder),
    gavelSet('v100', folder),
    lucidSet(folder),
    igniterSet('contention', folder),
    igniterSet('share', folder),
  ]);
}

function meanError(predict: Predict, { test }: Fold): number {
  return test.reduce((sum, { features, slowdown }) => sum + Math.abs(predict(features) - slowdown), 0) / test.length;
}

/**
 * For each learner the mean over all folds of its mean error, and our error over the others'. The paper's forest takes
 * most of the time and therefore only learns from splits by pair.
 */
export function errorsOf(
  set: InterferenceSet,
  kind: keyof typeof splits,
  firstSeed: number,
  seeds: number,
): Measurement[] {
  const all = Object.keys(learners) as (keyof typeof learners)[];
  const names = all.filter((name) => name !== 'literal' || kind === 'pair');
  const errors = Object.fromEntries(all.map((name) => [name, [] as number[]])) as Record<
    (typeof all)[number],
    number[]
  >;
  for (let seed = firstSeed; seed < firstSeed + seeds; seed += 1) {
    for (const fold of splits[kind](set, seed)) {
      for (const name of names) errors[name].push(meanError(learners[name](fold.train, seed), fold));
    }
  }
  const mean = (name: (typeof names)[number]): number =>
    errors[name].reduce((sum, error) => sum + error, 0) / errors[name].length;
  const here = `${set.name}.${kind}`;
  return [
    { name: `maeVsRidge.${here}`, value: mean('ours') / mean('ridge') },
    { name: `maeVsNearest3.${here}`, value: mean('ours') / mean('nearest3') },
    { name: `maeVsConstant.${here}`, value: mean('ours') / mean('constant') },
    ...names.map((name) => ({ name: `mae.${name}.${here}`, value: mean(name) })),
  ];
}

function measureErrors(sets: readonly InterferenceSet[], { options, say }: BenchContext): Measurement[] {
  const kinds = Object.keys(splits) as (keyof typeof splits)[];
  return sets.flatMap((set) =>
    kinds.flatMap((kind) => {
      const measurements = errorsOf(set, kind, options.seed, splitSeeds);
      say(`  ${set.name}, split by ${kind}: ${measurements[0]?.value.toFixed(3)} of ridge's error`);
      return measurements;
    }),
  );
}

/**
 * `choiceRegret`: median over the draws of all sets, with as many draws of each. iGniter's set of mere contention is
 * left out: its jobs are judged by their times at the shares that are chosen with them.
 */
function measureChoice(sets: readonly InterferenceSet[], { options }: BenchContext): Measurement[] {
  const losses = sets
    .filter(({ name }) => name !== 'igniterV100')
    .map((set) => ({
      name: `choiceRegret.${set.name}`,
      values: Array.from({ length: splitSeeds }, (_, i) => i + options.seed).flatMap((seed) => {
        const [fold] = splits.pair(set, seed);
        return fold === undefined ? [] : choiceLosses(set, learners.ours(fold.train, seed), seed);
      }),
    }));
  return [{ name: 'choiceRegret', values: losses.flatMap(({ values }) => values) }, ...losses].map(
    ({ name, values }) => ({ name, value: median(values), spread: [percentile(values, 5), percentile(values, 95)] }),
  );
}

/** FaaShare's predictor: its time, and its error on measured pairs beside the errors of simpler predictors. */
export const predictor: Bench = {
  summary: 'slowdown predictor: time, error on measured pairs, loss from its choices of partners (needs BENCH_DATA)',
  parts: ['speed', 'errors', 'choice'],
  async run(context) {
    const { options, say } = context;
    if (options.gpuSamples !== undefined) return measureSamples(options.gpuSamples, context);
    const chosen = (part: string): boolean => options.parts.length === 0 || options.parts.includes(part);
    const sets = chosen('errors') || chosen('choice') ? await measuredSets() : [];
    say(`predictor: ${trainFraction * 100} % of a set to learn from, ${splitSeeds} seeds from ${options.seed}`);
    for (const { name, rows, featureNames } of sets) say(`  ${name}: ${rows.length} rows; ${featureNames.join(', ')}`);
    return [
      ...(chosen('speed') ? measureSpeed(options.seed) : []),
      ...(chosen('choice') ? measureChoice(sets, context) : []),
      ...(chosen('errors') ? measureErrors(sets, context) : []),
    ];
  },
};

/** Errors on samples that bench `gpu` measured, for each device and mode in their file. */
async function measureSamples(path: string, { options, say, markSimulated }: BenchContext): Promise<Measurement[]> {
  const sets = sampleSets((await readSamples(path)).values());
  if (sets.length === 0) throw new BenchDataError(`There are no samples of a GPU in ${path}.`);
  say(`predictor: samples of ${path}`);
  if (sets.some(({ simulated }) => simulated)) markSimulated();
  return sets.flatMap((set) => sampleErrors(set, options.seed, say));
}

/** Size of the paper's data set (section V). */
const sampleCount = 1000;
const rounds = 31;
const perRound = 5000;

/** Invented runs beside one to four neighbours; the time of a prediction does not depend on the true slowdowns. */
function inventedSamples(seed: number): SlowdownSample[] {
  const random = seededRandom(seed);
  const workload = (): CoLocated => {
    const [smUtil, dramUtil, l2Util] = [0, 0, 0].map(() => randomFraction(random)) as [number, number, number];
    return { features: { smUtil, dramUtil, l2Util }, share: (1 + Math.floor(randomFraction(random) * 10)) / 10 };
  };
  return Array.from({ length: sampleCount }, () => {
    const one = workload();
    const others = Array.from({ length: 1 + Math.floor(randomFraction(random) * 4) }, workload);
    const contended = others.reduce((sum, { features }) => sum + features.dramUtil! * one.features.dramUtil!, 1);
    return { one, others, slowdown: contended * (1 + 0.05 * randomFraction(random)) };
  });
}

/** Processor time of a prediction, µs, by round; on a busy machine wall time would include other processes. */
function timesOf(predict: (i: number) => number): number[] {
  const times: number[] = [];
  let sum = 0;
  for (let round = 0; round < rounds; round += 1) {
    const start = process.cpuUsage();
    for (let i = 0; i < perRound; i += 1) sum += predict((i * 7919) % sampleCount);
    const { user, system } = process.cpuUsage(start);
    times.push((user + system) / perRound);
  }
  if (!Number.isFinite(sum)) throw new Error('A prediction is not finite.');
  // The engine compiles the code in the first rounds.
  return times.slice(5);
}

/**
 * `predictUs`: processor time of one prediction of the shipped predictor, from utilisations and shares to slowdown: 100
 * trees of depth 12, regression and capacity model. `literalPredictUs`: the paper's forest alone. `trainMs`: learning
 * from 1,000 runs.
 */
function measureSpeed(seed: number): Measurement[] {
  const samples = inventedSamples(seed);
  const start = performance.now();
  const model = trainModel({ gpuType: 'bench', mode: 'mps' }, samples, { version: 1, seed });
  const trainMs = performance.now() - start;
  const predictor = modelPredictor(model);
  const rows = samples.map(({ one, others }) => faashareFeatures(one, others));
  const literal = trainForest(
    rows,
    samples.map(({ slowdown }) => slowdown),
    { ...faashareForest, seed },
  );
  return [
    medianOf(
      'predictUs',
      timesOf((i) => predictor.slowdown(samples[i]!.one, samples[i]!.others)),
    ),
    medianOf(
      'literalPredictUs',
      timesOf((i) => predictForest(literal, rows[i]!)),
    ),
    { name: 'trainMs', value: trainMs },
  ];
}
