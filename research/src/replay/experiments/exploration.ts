/* eslint-disable @typescript-eslint/no-non-null-assertion -- sets are not empty, and shares have an entry a job. */
import { randomFraction, seededRandom, type Random } from '@gpuwhisk/common/system/random';
import { defaultExploration, type Exploration } from '@gpuwhisk/gpu/share/gaussian-process';
import { vaguePrior } from '@gpuwhisk/gpu/share/priors';
import { bestOf, defaultHyper, propose, type SearchProblem } from '@gpuwhisk/gpu/share/quota-search';
import type { MeasuredPoint } from '@gpuwhisk/gpu/share/surrogate';
import { drawSet, leastSum, slowdownAt, sumAt, type Surface } from '../../data/quota-surfaces.js';
import { percentile } from '@gpuwhisk/bench/statistics';
import { normal } from '@gpuwhisk/gpu/simulate/replay';

/** Standard deviation of the logarithm of a measured time. */
const noise = 0.03;

/** Explorations from none to one that does not end. ξ starts in deviations of the objective and decays. */
export const explorations: readonly Exploration[] = [
  { start: 0, decay: 1 },
  ...[0.01, 0.05, 0.2, 1].flatMap((start) => [0.5, 0.7, 1].map((decay) => ({ start, decay }))),
];

/** Explorations that are run end to end. */
export const extremes: readonly Exploration[] = [
  defaultExploration,
  { start: 0, decay: 1 },
  { start: 0.2, decay: 1 },
  { start: 1, decay: 1 },
];

/** Results of searches with one ξ. */
export interface SearchOutcome {
  /** Distance of the chosen shares from the optimum, as a fraction of the optimum, by set. */
  regrets: number[];
  evaluations: number[];
}

/**
 * Searches for the shares of `sets` sets of measured surfaces, 100 % in all, without prior data. Sets and noise depend
 * on the seed alone, so that all values of ξ search the same sets.
 */
export function searchAll(
  surfaces: readonly Surface[],
  jobs: number,
  sets: number,
  exploration: Exploration,
  seed: number,
): SearchOutcome {
  const outcome: SearchOutcome = { regrets: [], evaluations: [] };
  for (let set = 0; set < sets; set += 1) {
    const random = seededRandom(seed * 10_000 + jobs * 1000 + set);
    const drawn = drawSet(surfaces, jobs, random);
    const { shares, evaluations } = search(drawn, exploration, random);
    outcome.regrets.push(sumAt(drawn, shares) / leastSum(drawn, drawn[0]!.shares) - 1);
    outcome.evaluations.push(evaluations);
  }
  return outcome;
}

/** `median %, 90th percentile %; mean number of evaluations`. */
export function outcomeText({ regrets, evaluations }: SearchOutcome): string[] {
  const mean = evaluations.reduce((sum, one) => sum + one, 0) / evaluations.length;
  return [...[50, 90].map((part) => `${(100 * percentile(regrets, part)).toFixed(1)} %`), mean.toFixed(1)];
}

function search(
  set: readonly Surface[],
  exploration: Exploration,
  random: Random,
): { shares: readonly number[]; evaluations: number } {
  const problem: SearchProblem = {
    jobs: set.map(() => ({ prior: vaguePrior, weight: 1, maxSlowdown: Infinity })),
    space: { shares: set[0]!.shares, maxTotal: 100 },
    hyper: defaultHyper,
    exploration,
  };
  // Candidates use random numbers of their own, so that the noise of a measurement does not depend on earlier
  // proposals.
  const drawing = seededRandom(Math.floor(randomFraction(random) * 2 ** 31));
  const points: MeasuredPoint[] = [];
  for (;;) {
    const next = propose(problem, points, points.length, drawing);
    if (next === undefined) break;
    const slowdowns = set.map((one, at) => slowdownAt(one, next.shares[at]!) * Math.exp(noise * normal(random)));
    points.push({ shares: next.shares, slowdowns });
  }
  const best = bestOf(problem, points);
  if (best === undefined) throw new Error('a search measured nothing');
  return { shares: best.shares, evaluations: points.length };
}
