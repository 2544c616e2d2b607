/* eslint-disable @typescript-eslint/no-non-null-assertion -- sets are not empty, and shares have an entry a job. */
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import {
  allotments,
  defaultHyper,
  maxEvaluations,
  quotaSearchBody,
  quotaSearchJob,
} from '@gpuwhisk/gpu/share/quota-search';
import type { Hyperparameters, Prior } from '@gpuwhisk/gpu/share/gaussian-process';
import { fittedHyper, pooledPrior, vaguePrior } from '@gpuwhisk/gpu/share/priors';
import { QuotaTable } from '@gpuwhisk/gpu/share/quota-table';
import type { Measurement } from '@gpuwhisk/bench/bench';
import { BenchDataError } from '@gpuwhisk/bench/data/csv';
import { percentile, randomItem } from '@gpuwhisk/bench/statistics';
import { drawSet, folds, leastSum, slowdownAt, sumAt } from '../data/quota-surfaces.js';
import type { Surface } from '../data/quota-surfaces.js';

/** Standard deviation of the logarithm of a measured time, as means over some hundred runs show it. */
const noise = 0.03;
const foldCount = 5;
const classes = [10, 20, 30, 50, 70, 100];

interface Comparison {
  rapp: readonly Surface[];
  igniter: readonly Surface[];
  /** Sets of jobs for each number of jobs. */
  sets: number;
  seed: number;
  say(line: string): void;
}

/** Shares that one method found. */
interface Found {
  shares: readonly number[];
  evaluations: number;
}

/** Results of one method over many sets. */
interface Outcome {
  /** Relative to the optimum, by set. */
  gaps: number[];
  evaluations: number[];
}

/**
 * Distance of the search from the least sum of slowdowns, for models whose curves it has not seen, beside random and
 * equal splits. Every evaluation gives each job's time with noise; gaps are computed from the true times.
 */
export async function comparison({ rapp, igniter, sets, seed, say }: Comparison): Promise<Measurement[]> {
  const measurements: Measurement[] = [];
  const largest = { gap: 0, evaluations: 0 };
  const models = [...new Set(rapp.map(({ model }) => model))];
  for (const jobs of [3, 4]) {
    const found = {
      search: outcome(),
      flat: outcome(),
      classes: outcome(),
      ownClasses: outcome(),
      random: outcome(),
      equal: outcome(),
    };
    const parts = folds(models, foldCount, seededRandom(seed));
    checkFolds(parts, jobs);
    for (const [fold, held] of parts.entries()) {
      const random = seededRandom(seed * 1000 + fold * 10 + jobs);
      const known = rapp.filter(({ model }) => !held.includes(model));
      const unseen = rapp.filter(({ model }) => held.includes(model));
      const learned = { prior: pooledPrior(known), hyper: fittedHyper(known, defaultHyper) };
      say(
        `${jobs} jobs, models left out: ${held.length}, length ${learned.hyper.lengths[0]}, noise ${learned.hyper.noise}`,
      );
      for (let set = 0; set < sets / foldCount; set += 1) {
        const drawn = drawSet(unseen, jobs, random);
        const shares = drawn[0]!.shares;
        note(found.search, drawn, await search(drawn, shares, learned, random));
        note(found.flat, drawn, await search(drawn, shares, { prior: vaguePrior, hyper: learned.hyper }, random));
        const ofClasses = await search(drawn, classes, learned, random);
        note(found.classes, drawn, ofClasses);
        note(found.ownClasses, drawn, ofClasses, classes);
        note(found.random, drawn, randomSplits(drawn, random));
        note(found.equal, drawn, equalSplit(drawn));
      }
    }
    measurements.push(
      ...gapsOf(`boGap.${jobs}`, found.search),
      mean(`boEvaluationsMean.${jobs}`, found.search.evaluations),
      ...gapsOf(`noTransferGap.${jobs}`, found.flat).slice(0, 1),
      ...gapsOf(`classGap.${jobs}`, found.classes).slice(0, 1),
      ...gapsOf(`classOwnGap.${jobs}`, found.ownClasses).slice(0, 1),
      ...gapsOf(`random7Gap.${jobs}`, found.random).slice(0, 1),
      ...gapsOf(`equalGap.${jobs}`, found.equal).slice(0, 1),
    );
    largest.gap = Math.max(largest.gap, percentile(found.search.gaps, 50));
    largest.evaluations = Math.max(largest.evaluations, ...found.search.evaluations);
    measurements.push(...(await elsewhere(rapp, igniter, jobs, sets, seed)));
  }
  return [
    { name: 'boGap', value: largest.gap },
    { name: 'boEvaluations', value: largest.evaluations },
    ...measurements,
  ];
}

/** Throws BenchDataError for parts that have fewer models than a set has jobs, of which no set can be drawn. */
function checkFolds(parts: readonly (readonly string[])[], jobs: number): void {
  const fewest = Math.min(...parts.map((held) => held.length));
  if (fewest >= jobs) return;
  throw new BenchDataError(
    `Sets of ${jobs} jobs need ${jobs} models in each of ${parts.length} parts that are left out in turn, and one has` +
      ` ${fewest}: at least ${jobs * parts.length} models are needed.`,
  );
}

/** The same comparison on another laboratory's V100, with data learned from RaPP's models of other names. */
async function elsewhere(
  rapp: readonly Surface[],
  igniter: readonly Surface[],
  jobs: number,
  sets: number,
  seed: number,
): Promise<Measurement[]> {
  const known = rapp.filter(({ model }) => igniter.every((one) => one.model !== model));
  const learned = { prior: pooledPrior(known), hyper: fittedHyper(known, defaultHyper) };
  const random = seededRandom(seed * 1000 + jobs);
  const found = { search: outcome(), random: outcome(), equal: outcome() };
  for (let set = 0; set < sets; set += 1) {
    const drawn = drawSet(igniter, jobs, random);
    note(found.search, drawn, await search(drawn, drawn[0]!.shares, learned, random));
    note(found.random, drawn, randomSplits(drawn, random));
    note(found.equal, drawn, equalSplit(drawn));
  }
  return [
    ...gapsOf(`igniterGap.${jobs}`, found.search).slice(0, 1),
    ...gapsOf(`igniterRandom7Gap.${jobs}`, found.random).slice(0, 1),
    ...gapsOf(`igniterEqualGap.${jobs}`, found.equal).slice(0, 1),
  ];
}

/** Shares from the search as the job runs it, and the table's answer afterwards. */
async function search(
  set: readonly Surface[],
  shares: readonly number[],
  { prior, hyper }: { prior: Prior; hyper: Hyperparameters },
  random: Random,
): Promise<Found> {
  const table = new QuotaTable({ predictorOf: () => ({ slowdown: () => 1 }) });
  const jobs = set.map(({ model, batch }) => ({ function: model, version: '1', batch, soloMs: 1 }));
  let evaluations = 0;
  const body = quotaSearchBody({
    table,
    priorOf: () => prior,
    hyperOf: () => hyper,
    driverMajorOf: () => 1,
    saved: () => Promise.resolve(),
    measure: (_, allotment) => {
      evaluations += 1;
      return Promise.resolve(observed(set, allotment, random));
    },
    random,
    space: { shares, maxTotal: 100 },
  });
  const [gpu, budgets] = [{ gpuType: 'v100', mode: 'mps' } as const, set.map(() => Infinity)];
  const request = quotaSearchJob({ ...gpu, set: jobs, maxSlowdowns: budgets, gpu: 'GPU-1' });
  await body(request.payload, { attempt: 1, isLast: true, signal: new AbortController().signal });
  const choice = table.shareFor(jobs, gpu, budgets);
  return { shares: choice.shares.map((share) => Math.round(100 * share)), evaluations };
}

/** The best measured of as many random splits as a search may make, each drawn evenly from those that give away all. */
function randomSplits(set: readonly Surface[], random: Random): Found {
  const splits = allotments({ shares: set[0]!.shares, maxTotal: 100 }, set.length, Infinity, random).filter(
    (shares) => shares.reduce((sum, share) => sum + share, 0) === 100,
  );
  let best: readonly number[] = [];
  let least = Infinity;
  for (let evaluation = 0; evaluation < maxEvaluations; evaluation += 1) {
    const shares = randomItem(splits, random);
    const sum = observed(set, shares, random).reduce((total, slowdown) => total + slowdown, 0);
    if (sum < least) [best, least] = [shares, sum];
  }
  return { shares: best, evaluations: maxEvaluations };
}

/** Equal shares; the remainder goes step by step to the first jobs. */
function equalSplit(set: readonly Surface[]): Found {
  const { shares } = set[0]!;
  const each = shares.filter((share) => share * set.length <= 100).at(-1)!;
  const split = set.map(() => each);
  for (const at of split.keys()) {
    const left = 100 - split.reduce((sum, share) => sum + share, 0);
    split[at] = shares
      .filter((share) => share <= Math.min(each + left, shares[shares.indexOf(each) + 1] ?? each))
      .at(-1)!;
  }
  return { shares: split, evaluations: 0 };
}

/** Notes the distance from the best of the `allowed` shares; default: all measured shares. */
function note(
  { gaps, evaluations }: Outcome,
  set: readonly Surface[],
  found: Found,
  allowed: readonly number[] = set[0]!.shares,
): void {
  gaps.push(sumAt(set, found.shares) / leastSum(set, allowed) - 1);
  evaluations.push(found.evaluations);
}

/** Slowdowns with the noise of a measurement. */
function observed(set: readonly Surface[], shares: readonly number[], random: Random): number[] {
  return set.map((surface, at) => slowdownAt(surface, shares[at]!) * Math.exp(noise * standardNormal(random)));
}

/** A standard normal number by Box and Muller's transform. */
function standardNormal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - randomFraction(random))) * Math.cos(2 * Math.PI * randomFraction(random));
}

function outcome(): Outcome {
  return { gaps: [], evaluations: [] };
}

function gapsOf(name: string, { gaps }: Outcome): Measurement[] {
  return [
    { name, value: percentile(gaps, 50), spread: [percentile(gaps, 5), percentile(gaps, 95)] },
    { name: `${name}.p90`, value: percentile(gaps, 90) },
  ];
}

function mean(name: string, values: readonly number[]): Measurement {
  return { name, value: values.reduce((sum, value) => sum + value, 0) / values.length };
}
