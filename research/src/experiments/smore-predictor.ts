import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import type { FeatureSet } from '@gpuwhisk/gpu/predict/degradation-features';
import type { Member } from '@gpuwhisk/gpu/predict/degradation-predictor';
import { pairDegradation, trainPairModel } from '@gpuwhisk/gpu/predict/pair-degradation';
import { SmoreDegradation } from '@gpuwhisk/gpu/predict/smore-degradation';
import { medianOf, type BenchContext, type Measurement } from '@gpuwhisk/bench/bench';
import { benchDataDir } from '@gpuwhisk/bench/data/csv';
import {
  degradationLearners,
  errorsOn,
  type DegradationErrors,
  type DegradationLearner,
} from '../predictor/degradation-learners.js';
import {
  gavelDegradations,
  igniterDegradations,
  lucidDegradations,
  type DegradationSample,
  type DegradationSet,
} from '../predictor/degradation-sets.js';
import { meanOf, pairedInterval, ratio } from '@gpuwhisk/bench/statistics';

/** Seeds at 20 % of the samples; `--samples` may request fewer. */
const mostSeeds = 30;
/** Seeds of sets without a bar, and at each share of a curve. */
const fewSeeds = 10;
const curveSeeds = 3;
const headShare = 0.2;
const curveShares = [0.1, 0.2, 0.4, 0.6, 0.8];

/** A set of pairs, and features to read. */
interface Setting {
  set: DegradationSet;
  features: FeatureSet;
  /** Suffix of its metrics. */
  name: string;
  /** Whether a bar applies: the others get fewer seeds and no curve. */
  hasBar: boolean;
}

/**
 * Gavel's pairs by SMORE's 24 static inputs, and with the solo time of a step beside them; Lucid's and iGniter's by figures
 * of runs alone. Gavel and Lucid measured training beside training; iGniter inference beside inference.
 */
async function settings(): Promise<Setting[]> {
  const folder = benchDataDir();
  const v100 = await gavelDegradations('v100', folder);
  const p100 = await gavelDegradations('p100', folder);
  const lucid = await lucidDegradations(folder);
  const igniter = await igniterDegradations(folder);
  return [
    { set: v100, features: 'static', name: v100.name, hasBar: true },
    { set: p100, features: 'static', name: p100.name, hasBar: true },
    { set: lucid, features: 'measured', name: lucid.name, hasBar: true },
    { set: v100, features: 'all', name: `${v100.name}Solo`, hasBar: false },
    { set: p100, features: 'all', name: `${p100.name}Solo`, hasBar: false },
    { set: igniter, features: 'measured', name: igniter.name, hasBar: false },
  ];
}

/**
 * SMORE's degradation predictor on measured pairs: RMSLE and MAE beside simpler predictors at 20 % of the samples, by share
 * of samples, with a model left out, after online updates; and the time of look-ups and predictions. Reads BENCH_DATA.
 */
export async function smorePredictor({ options, say }: BenchContext): Promise<Measurement[]> {
  const all = await settings();
  const seeds = Math.min(mostSeeds, options.samples);
  say(
    `predictor: ${headShare * 100} % of the pairs to learn from, ${seeds} seeds from ${options.seed}; 95 % intervals`,
  );
  for (const { name, set, features } of all) say(`  ${name}: ${set.samples.length} samples, features '${features}'`);
  const few = Math.min(curveSeeds, seeds);
  const stages: readonly ((setting: Setting) => Measurement[])[] = [
    (setting) => compare(setting, options.seed, setting.hasBar ? seeds : Math.min(fewSeeds, seeds)),
    (setting) => leaveModelsOut(setting, options.seed),
    (setting) => (setting.hasBar ? curve(setting, options.seed, few) : []),
    (setting) => (setting.hasBar ? online(setting, options.seed, few) : []),
  ];
  const measurements: Measurement[] = [];
  const add = (found: readonly Measurement[]): void => {
    for (const { name, value, spread } of found) {
      const interval = spread === undefined ? '' : ` (${spread.map((end) => end.toFixed(4)).join(' to ')})`;
      say(`    ${name} ${value.toFixed(4)}${interval}`);
    }
    measurements.push(...found);
  };
  add(speed(options.seed));
  for (const stage of stages) for (const setting of all) add(stage(setting));
  return measurements;
}

/** Samples to learn from, and the others. */
interface Split {
  train: DegradationSample[];
  test: DegradationSample[];
}

/** `share` of the pairs at random, with all rows of each; at least two pairs on either side. */
export function splitPairs({ samples }: DegradationSet, share: number, seed: number): Split {
  const random = seededRandom(seed);
  const order = [...new Set(samples.map(({ pair }) => pair))]
    .map((pair) => ({ pair, at: random.uint32() }))
    .sort((one, other) => one.at - other.at);
  const count = Math.min(Math.max(2, Math.round(order.length * share)), order.length - 2);
  const chosen = new Set(order.slice(0, count).map(({ pair }) => pair));
  return {
    train: samples.filter(({ pair }) => chosen.has(pair)),
    test: samples.filter(({ pair }) => !chosen.has(pair)),
  };
}

function errorsOf(
  { features }: Setting,
  learner: DegradationLearner,
  { train, test }: Split,
  seed: number,
): DegradationErrors {
  return errorsOn(test, degradationLearners[learner](train, features, seed));
}

const names = Object.keys(degradationLearners) as DegradationLearner[];

/** The errors of all predictors, and ours over the others', paired by seed. */
function compare(setting: Setting, firstSeed: number, seeds: number): Measurement[] {
  const errors = new Map<DegradationLearner, DegradationErrors[]>(names.map((name) => [name, []]));
  for (let seed = firstSeed; seed < firstSeed + seeds; seed += 1) {
    const split = splitPairs(setting.set, headShare, seed);
    for (const name of names) errors.get(name)?.push(errorsOf(setting, name, split, seed));
  }
  const of = (name: DegradationLearner, metric: keyof DegradationErrors): number[] =>
    (errors.get(name) ?? []).map((one) => one[metric]);
  const against = (label: string, name: DegradationLearner): Measurement =>
    over(`${label}.${setting.name}`, of('ours', 'rmsle'), of(name, 'rmsle'), firstSeed);
  return [
    against('rmsleVsRidge', 'ridge'),
    against('rmsleVsNearest3', 'nearest3'),
    against('rmsleVsConstant', 'constant'),
    ...names.flatMap((name) => [
      { name: `rmsle.${name}.${setting.name}`, value: meanOf(of(name, 'rmsle')) },
      { name: `mae.${name}.${setting.name}`, value: meanOf(of(name, 'mae')) },
    ]),
  ];
}

/** Mean of ours over mean of theirs, with a 95 % bootstrap interval over pairs. */
function over(name: string, ours: readonly number[], theirs: readonly number[], seed: number): Measurement {
  const { mean, low, high } = pairedInterval(ours, theirs, ratio, seededRandom(seed));
  return { name, value: mean, spread: [low, high] };
}

/** `rmsle` and `mae` by the share of the pairs that is learned from, percent. */
function curve(setting: Setting, firstSeed: number, seeds: number): Measurement[] {
  return curveShares.flatMap((share) => {
    const errors = Array.from({ length: seeds }, (_, i) => {
      const seed = firstSeed + i;
      return errorsOf(setting, 'ours', splitPairs(setting.set, share, seed), seed);
    });
    const percent = Math.round(share * 100);
    return (['rmsle', 'mae'] as const).map((metric) => ({
      name: `${metric}At${percent}.${setting.name}`,
      value: meanOf(errors.map((one) => one[metric])),
    }));
  });
}

/** Samples that are learned from when a model is left out, at most: it bounds the time of the bench. */
const mostLeftIn = 400;

/**
 * All pairs with one model are unseen, each model in turn: the mean over models of our RMSLE over the constant's and
 * over ridge's. Intervals are over models.
 */
function leaveModelsOut(setting: Setting, seed: number): Measurement[] {
  const { samples } = setting.set;
  const models = [...new Set(samples.flatMap(({ models: both }) => both))].sort();
  const compared = ['ours', 'ridge', 'constant'] as const;
  const errors = models.map((out) => {
    const left = { name: setting.name, samples: samples.filter(({ models: both }) => !both.includes(out)) };
    const { train } = splitPairs(left, Math.min(0.95, mostLeftIn / left.samples.length), seed);
    const test = samples.filter(({ models: both }) => both.includes(out));
    return compared.map((name) => errorsOf(setting, name, { train, test }, seed).rmsle);
  });
  const column = (at: number): number[] => errors.map((row) => row[at] ?? NaN);
  return [
    over(`leftOutVsConstant.${setting.name}`, column(0), column(2), seed),
    over(`leftOutVsRidge.${setting.name}`, column(0), column(1), seed),
  ];
}

const observations = 10;
/** Noise of an observation, a fraction of the time together. */
const noise = 0.02;

/**
 * RMSLE of unseen pairs before and after ten noisy observations of each: what the weights of equation 3.7 add. The data has pairs
 * only, so that this shows nothing of three members.
 */
function online(setting: Setting, firstSeed: number, seeds: number): Measurement[] {
  const key = { gpuType: 'bench', mode: 'timeslice' } as const;
  const runs = Array.from({ length: seeds }, (_, i) => {
    const seed = firstSeed + i;
    const { train, test } = splitPairs(setting.set, headShare, seed);
    const predictor = new SmoreDegradation();
    const role = { victim: 'workload', neighbour: 'workload' } as const;
    predictor.put(trainPairModel({ ...key, ...role }, train, { version: 1, seed, sets: [setting.features] }));
    const placeOf = ({ victim, neighbour }: DegradationSample) => {
      const members: Member[] = [victim, neighbour].map((side, at) => ({ id: `${at}`, kind: 'workload', ...side }));
      return { ...key, members };
    };
    const predict = (sample: DegradationSample): number => predictor.predict(placeOf(sample))[0]?.degradation ?? NaN;
    const error = (): number => {
      const squares = test.map((sample) => {
        return (Math.log1p(predict(sample)) - Math.log1p(Math.max(0, sample.degradation))) ** 2;
      });
      return Math.sqrt(meanOf(squares));
    };
    const before = error();
    const random = seededRandom(seed);
    for (let round = 0; round < observations; round += 1) {
      for (const sample of test) {
        const wrong = 1 + noise * (2 * randomFraction(random) - 1);
        predictor.observe(placeOf(sample), [{ id: '0', degradation: (1 + sample.degradation) * wrong - 1 }]);
      }
    }
    return { before, after: error() };
  });
  return [
    over(
      `onlineVsOffline.${setting.name}`,
      runs.map(({ after }) => after),
      runs.map(({ before }) => before),
      firstSeed,
    ),
  ];
}

const speedMembers = 64;
const speedRounds = 25;
const perRound = 4000;

/** Processor time of one call, µs, by round; on a busy machine wall time would include other processes. */
function timesOf(call: (i: number) => number): number[] {
  const times: number[] = [];
  let sum = 0;
  for (let round = 0; round < speedRounds; round += 1) {
    const start = process.cpuUsage();
    for (let i = 0; i < perRound; i += 1) sum += call(i * 7919);
    const { user, system } = process.cpuUsage(start);
    times.push((user + system) / perRound);
  }
  if (!Number.isFinite(sum)) throw new Error('A prediction is not finite.');
  // The engine compiles the code in the first rounds.
  return times.slice(5);
}

/**
 * `tableUs`: D of a known pair by the names of its models. `pairUs`: a prediction from features, blend of forest and kernel,
 * learned from 1,024 invented samples (as many as the paper's). `place5Us`: all members of a place with a workload, three functions and a
 * newcomer, from the table.
 */
function speed(seed: number): Measurement[] {
  const random = seededRandom(seed);
  const fraction = (): number => randomFraction(random);
  const members = (kind: Member['kind']): Member[] =>
    Array.from({ length: speedMembers }, (_, i) => ({
      id: `${kind}${i}`,
      kind,
      model: `${kind}${i}`,
      features: {
        flops: 1e9 * (1 + 100 * fraction()),
        params: 1e6 * (1 + 100 * fraction()),
        memoryMiB: 10_000 * fraction(),
        batch: 2 ** Math.floor(8 * fraction()),
        convLayers: Math.floor(100 * fraction()),
        linearLayers: Math.floor(20 * fraction()),
        normLayers: Math.floor(50 * fraction()),
      },
    }));
  const [workloads, functions] = [members('workload'), members('function')];
  const at = (list: readonly Member[], i: number): Member => list[i % list.length] as Member;
  const samples = Array.from({ length: 1024 }, (_, i) => {
    const [victim, neighbour] = [at(workloads, i), at(functions, i >> 6)];
    const side = ({ model, features = {} }: Member) => ({ model, features });
    return { victim: side(victim), neighbour: side(neighbour), degradation: fraction() };
  });
  const key = { gpuType: 'bench', mode: 'mps' } as const;
  const role = { victim: 'workload', neighbour: 'function' } as const;
  const model = trainPairModel({ ...key, ...role }, samples, { version: 1, seed, kinds: ['blend'] });
  const predictor = new SmoreDegradation();
  predictor.put(model);
  predictor.precompute(key, workloads, functions);
  const place = (i: number) => ({
    ...key,
    members: [at(workloads, i), at(functions, i), at(functions, i + 1), at(functions, i + 2)],
  });
  return [
    medianOf(
      'tableUs',
      timesOf((i) => predictor.pair(key, at(workloads, i), at(functions, i >> 3)).degradation),
    ),
    medianOf(
      'pairUs',
      timesOf((i) => {
        const [{ features: one = {} }, { features: other = {} }] = [at(workloads, i), at(functions, i >> 3)];
        return pairDegradation(model, one, other).degradation;
      }),
    ),
    medianOf(
      'place5Us',
      timesOf((i) => predictor.predict(place(i), at(functions, i + 3))[0]?.degradation ?? NaN),
    ),
  ];
}
