// SMORE beside its baselines, on one and eight GPUs with training jobs, with and without the guard (replay, extrapolated).
import { seededRandom, type Random } from '@gpuwhisk/common/system/random';
import type { BenchContext, Measurement } from '@gpuwhisk/bench/bench';
import { benchDataDir } from '@gpuwhisk/bench/data/csv';
import { functionModels } from '../replay/co-location/functions.js';
import {
  runCoLocation,
  sharedGpus,
  type CoLocationMetrics,
  type CoLocationResult,
  type Contender,
  type Experiment,
  type World,
} from '../replay/co-location/run.js';
import { geometries, slicesOf } from '../replay/co-location/slices.js';
import { comparedTrainings, setUps, singleTraining } from '../replay/co-location/trainings.js';
import { readWorld } from '../replay/co-location/world.js';
import { meanOf, own, pairedInterval } from '@gpuwhisk/bench/statistics';

/** Truths, which the seeds use in turn. */
const draws = 10;
/** Seeds of the comparison; `--samples` may request fewer. */
const mostSeeds = 30;
const fewSeeds = 10;
/** Truths of the slices, each with a predictor for every kind of slice. */
const sliceDraws = 5;
/** GPUs of the papers' server. */
const paperGpus = 8;
/** Length of the requests, s: on one GPU that of the thesis; the papers do not state the other. */
const seconds = { one: 20, eight: 10, guard: 20, guardLong: 120, mig: 20 } as const;

/** The papers' rates: comparison (paper VIII-D), eight GPUs (VIII-C), one GPU (VIII-B: 390 requests in 20 s), one A100 with MIG (VIII-F). */
const perMinute = { compare: 16_000, eight: 12_000, one: (390 * 60) / 20, mig: 4500 } as const;

/** Policies of the comparison by the names in figures. */
const compared: Readonly<Record<string, Contender>> = {
  smore: { policy: 'smore' },
  smorePairs: { policy: 'smore', learned: 'pairs' },
  smoreLiteral: { policy: 'smore-literal' },
  random: { policy: 'random' },
  edfUtil: { policy: 'edf-util' },
  edfDegradation: { policy: 'edf-degradation' },
};
const ours: Contender = { policy: 'smore' };
const oursNames: readonly string[] = ['smore', 'smorePairs', 'smoreLiteral'];
const guards: Readonly<Record<string, Contender>> = {
  with: { policy: 'smore' },
  without: { policy: { base: 'smore', preempt: 'none' } },
};

/** The four metrics of the paper, and whether more is better. */
const four = { dsr: true, gui: true, sfd: false, sld: false } as const;
type FourName = keyof typeof four;
const fourNames = Object.keys(four) as FourName[];

/** Parts that need the world of training jobs. */
export const coLocationParts = ['compare', 'setups', 'guard', 'mig'] as const;

/** Runs those parts that are wanted. */
export async function smoreCoLocation(
  { options, say }: BenchContext,
  wants: (part: string) => boolean,
): Promise<Measurement[]> {
  if (!coLocationParts.some(wants)) return [];
  const seeds = Math.min(mostSeeds, options.samples);
  const random = seededRandom(options.seed);
  const few = Math.min(fewSeeds, seeds);
  const found: Measurement[] = [];
  if (['compare', 'setups', 'guard'].some(wants)) {
    const world = await readWorld(Math.min(draws, seeds), options.seed, benchDataDir());
    sayWorld('GPUs under MPS', world, say);
    if (wants('compare')) found.push(...compare(world, seeds, random, say));
    if (wants('setups')) found.push(...single(world, seeds, random), ...eight(world, few, random, say));
    if (wants('guard')) found.push(...guard(world, few, random, say));
  }
  if (wants('mig')) {
    const world = await readWorld(Math.min(sliceDraws, seeds), options.seed, benchDataDir(), 'mig');
    sayWorld('MIG slices', world, say);
    found.push(...mig(world, seeds, random, say));
  }
  return found;
}

function sayWorld(name: string, { functions, trainings, draws: truths }: World, say: BenchContext['say']): void {
  const pairs = truths[0]?.learned.pairs ?? 0;
  say(
    `${name}: ${functions.length} functions, ${trainings.length} training jobs, ${truths.length} truths, ${pairs} pairs measured`,
  );
}

function runs(world: World, experiment: Experiment, contender: Contender, seeds: number): CoLocationResult[] {
  return Array.from({ length: seeds }, (_, at) => runCoLocation(world, experiment, contender, at + 1));
}

/** A mean over seeds with its 95 % interval: three figures, as results keep no intervals. */
function interval(name: string, values: readonly number[], random: Random): Measurement[] {
  const { mean, low, high } = pairedInterval(values, values, own, random);
  return withEnds(name, { mean, low, high });
}

function withEnds(name: string, { mean, low, high }: { mean: number; low: number; high: number }): Measurement[] {
  return [
    { name, value: mean, spread: [low, high] },
    { name: `${name}Low`, value: low },
    { name: `${name}High`, value: high },
  ];
}

const metric = (results: readonly CoLocationResult[], name: keyof CoLocationMetrics): number[] =>
  results.map(({ metrics }) => metrics[name]);

/**
 * The comparison at 16,000 requests a minute. `compare.POLICY.METRIC`; `compareGain.POLICY.METRIC`: by how much SMORE is
 * better than that baseline, negative where it is worse, paired by seed; `compare.dominating`: baselines that are at least
 * as good as SMORE in all four means; `compare.dominated`: baselines that SMORE is at least as good as in all four.
 */
function compare(world: World, seeds: number, random: Random, say: BenchContext['say']): Measurement[] {
  const experiment: Experiment = {
    places: sharedGpus(paperGpus, comparedTrainings),
    requests: { perMinute: perMinute.compare, seconds: seconds.eight },
  };
  say(`compare: ${perMinute.compare} requests a minute for ${seconds.eight} s on ${paperGpus} GPUs, ${seeds} seeds`);
  const results = new Map(
    Object.entries(compared).map(([name, contender]): [string, CoLocationResult[]] => {
      const found = runs(world, experiment, contender, seeds);
      say(`  ${name}: ${fourNames.map((one) => `${one} ${meanOf(metric(found, one)).toFixed(3)}`).join(', ')}`);
      return [name, found];
    }),
  );
  const mine = results.get('smore') ?? [];
  const figures = [...results].flatMap(([name, found]) => [
    ...fourNames.flatMap((one) => interval(`compare.${name}.${one}`, metric(found, one), random)),
    ...(['admitted', 'stopped', 'beyond', 'longestBeyondS'] as const).map((one) => {
      return { name: `compare.${name}.${one}`, value: meanOf(metric(found, one)) };
    }),
  ]);
  const gains = [...results]
    .filter(([name]) => !oursNames.includes(name))
    .map(([name, found]) => ({
      name,
      all: fourNames.map((one) => {
        const sign = four[one] ? 1 : -1;
        const better = (one: number, theirs: number): number => sign * (one - theirs);
        return { one, gain: pairedInterval(metric(mine, one), metric(found, one), better, random) };
      }),
    }));
  const counts = (is: (gain: number) => boolean): number =>
    gains.filter(({ all }) => all.every(({ gain }) => is(gain.mean))).length;
  return [
    ...figures,
    ...gains.flatMap(({ name, all }) => all.flatMap(({ one, gain }) => withEnds(`compareGain.${name}.${one}`, gain))),
    { name: 'compare.dominating', value: counts((gain) => gain <= 0) },
    { name: 'compare.dominated', value: counts((gain) => gain >= 0) },
    { name: 'compare.usedAlone', value: meanOf(metric(mine, 'usedAlone')) },
  ];
}

/** One GPU with MobileNet and 390 requests in 20 s (thesis section 5.4.1, figures 5.3 to 5.6). */
function single(world: World, seeds: number, random: Random): Measurement[] {
  const experiment: Experiment = {
    places: sharedGpus(1, singleTraining),
    requests: { perMinute: perMinute.one, seconds: seconds.one },
  };
  const results = runs(world, experiment, ours, seeds);
  const names = ['admitted', 'dsr', 'below10', 'below100', 'sfd', 'sld', 'used', 'usedAlone'] as const;
  return [
    ...names.flatMap((one) => interval(`single.${one}`, metric(results, one), random)),
    ...functionModels.map((model) => {
      const [admitted = 0, submitted = 0] = (['admitted', 'submitted'] as const).map((which) =>
        results.reduce((sum, { byModel }) => sum + (byModel.get(model)?.[which] ?? 0), 0),
      );
      return { name: `single.admitted.${model}`, value: submitted === 0 ? 0 : admitted / submitted };
    }),
    ...degradationSeries(results),
    ...series('single', results[0]),
  ];
}

/** Part of the functions served with a degradation below 0, 10, ... 200 % (thesis figure 5.3). */
function degradationSeries(results: readonly CoLocationResult[]): Measurement[] {
  const all = results.flatMap(({ degradations }) => degradations);
  return Array.from({ length: 21 }, (_, at) => ({
    name: `series.single.below.${at}`,
    value: all.filter((one) => one < at / 10).length / Math.max(1, all.length),
  }));
}

/** The six set-ups on eight GPUs at 12,000 requests a minute (thesis section 5.4.2, figures 5.7 to 5.9). */
function eight(world: World, seeds: number, random: Random, say: BenchContext['say']): Measurement[] {
  const names = ['admitted', 'dsr', 'sfd', 'sld', 'used', 'usedAlone'] as const;
  return setUps.flatMap(({ name, trainings }) => {
    const experiment: Experiment = {
      places: sharedGpus(paperGpus, trainings),
      requests: { perMinute: perMinute.eight, seconds: seconds.eight },
    };
    const results = runs(world, experiment, ours, seeds);
    say(`  ${name}: ${names.map((one) => `${one} ${meanOf(metric(results, one)).toFixed(3)}`).join(', ')}`);
    return [
      ...names.flatMap((one) => interval(`setup.${name}.${one}`, metric(results, one), random)),
      // Figure 5.8 is of this set-up.
      ...(name === 'MobileNet-same' ? series('cluster', results[0]) : []),
    ];
  });
}

/** Requests of each second and the use of the SMs, of the first seed. */
function series(name: string, result: CoLocationResult | undefined): Measurement[] {
  if (result === undefined) return [];
  const { bySecond, run } = result;
  const used = bySecond.submitted.map((_, at) => {
    const each = run.workloads.flatMap((one) => one.seconds[at]?.used ?? []);
    return each.length === 0 ? 0 : meanOf(each);
  });
  return Object.entries({ ...bySecond, used }).flatMap(([what, values]) =>
    values.map((value, at) => ({ name: `series.${name}.${what}.${at}`, value })),
  );
}

/** Factor of the functions' times for which the guard has time to act: most runs then take seconds. */
const longFactor = 100;

/**
 * SMORE with and without the guard, with functions as they are and a hundred times as long at a hundredth of the rate:
 * part of the training jobs' seconds beyond the bound, and the longest stretch of them.
 */
function guard(world: World, seeds: number, random: Random, say: BenchContext['say']): Measurement[] {
  const loads = {
    short: { perMinute: perMinute.compare, seconds: seconds.guard },
    long: { perMinute: perMinute.compare / longFactor, seconds: seconds.guardLong, length: longFactor },
  };
  const places = sharedGpus(paperGpus, comparedTrainings);
  return Object.entries(loads).flatMap(([length, requests]) =>
    Object.entries(guards).flatMap(([name, contender]) => {
      const results = runs(world, { places, requests }, contender, seeds);
      const values = (['beyond', 'longestBeyondS', 'sfd', 'dsr', 'stopped'] as const).flatMap((one) =>
        interval(`guard.${length}.${name}.${one}`, metric(results, one), random),
      );
      say(`  ${length} functions ${name} the guard: beyond ${meanOf(metric(results, 'beyond')).toFixed(4)}`);
      return values;
    }),
  );
}

/** One A100 in three geometries at 4,500 requests a minute (thesis section 5.6.2, figure 5.12). */
function mig(world: World, seeds: number, random: Random, say: BenchContext['say']): Measurement[] {
  const requests = { perMinute: perMinute.mig, seconds: seconds.mig };
  return Object.keys(geometries).flatMap((geometry) => {
    const results = runs(world, { places: slicesOf(geometry), requests }, ours, seeds);
    say(`  ${geometry}: ${fourNames.map((one) => `${one} ${meanOf(metric(results, one)).toFixed(3)}`).join(', ')}`);
    return fourNames.flatMap((one) => interval(`mig.${geometry}.${one}`, metric(results, one), random));
  });
}
