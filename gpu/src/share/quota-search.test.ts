import { describe, expect, test } from '@jest/globals';
import type { Random } from '@gpuwhisk/common/system/random';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { allotments, bestOf, classSpace, defaultHyper, maxEvaluations, propose } from './quota-search.js';
import { fittedHyper, pooledPrior } from './priors.js';
import type { ShareCurve } from './priors.js';
import type { SearchProblem } from './quota-search.js';
import type { MeasuredPoint } from './surrogate.js';

const space = { shares: Array.from({ length: 10 }, (_, at) => 10 * (at + 1)), maxTotal: 100 };

/** A function that slows down in proportion below the share that it can use, on top of what its host takes. */
function curve(random: Random): ShareCurve {
  const usable = 10 + 90 * randomFraction(random);
  const host = randomFraction(random);
  const steepness = 0.8 + 0.4 * randomFraction(random);
  const time = (share: number): number => host + Math.max(1, usable / share) ** steepness;
  const slowdowns = space.shares.map((share) => time(share) / time(100));
  return { shares: space.shares, slowdowns };
}

const random = seededRandom(11);
const pool = Array.from({ length: 40 }, () => curve(random));
const prior = pooledPrior(pool);
const hyper = fittedHyper(pool, defaultHyper);

const slowdownsOf = (set: readonly ShareCurve[], shares: readonly number[]): number[] =>
  set.map((one, at) => one.slowdowns[one.shares.indexOf(shares[at]!)]!);
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

function problemOf(set: readonly ShareCurve[], maxSlowdown = Infinity): SearchProblem {
  return { jobs: set.map(() => ({ prior, weight: 1, maxSlowdown })), space, hyper };
}

function search(problem: SearchProblem, set: readonly ShareCurve[], disturb = (point: MeasuredPoint) => point) {
  const points: MeasuredPoint[] = [];
  for (;;) {
    const proposal = propose(problem, points, points.length, seededRandom(1));
    if (proposal === undefined) return points;
    points.push(disturb({ shares: proposal.shares, slowdowns: slowdownsOf(set, proposal.shares) }));
  }
}

describe('on functions that it has not seen', () => {
  const sets = Array.from({ length: 15 }, () => Array.from({ length: 3 }, () => curve(random)));

  test('seven measurements come within 3 % of the optimum, median', () => {
    const gaps = sets.map((set) => {
      const points = search(problemOf(set), set);
      expect(points.length).toBeLessThanOrEqual(maxEvaluations);
      const optimum = Math.min(
        ...allotments(space, 3, Infinity, seededRandom(1)).map((shares) => sum(slowdownsOf(set, shares))),
      );
      return sum(slowdownsOf(set, bestOf(problemOf(set), points)!.shares)) / optimum - 1;
    });
    expect(gaps.sort((one, other) => one - other)[7]).toBeLessThan(0.03);
  });

  test('the same problem gives the same search', () => {
    expect(search(problemOf(sets[0]!), sets[0]!)).toEqual(search(problemOf(sets[0]!), sets[0]!));
  });

  test('what breaks a budget is never the best, and where nothing keeps it there is none', () => {
    for (const set of sets) {
      // The most slowed down job of the even split must do a tenth better.
      const bound = 0.9 * Math.max(...slowdownsOf(set, [30, 30, 30]));
      const best = bestOf(problemOf(set, bound), search(problemOf(set, bound), set));
      if (best !== undefined) expect(Math.max(...slowdownsOf(set, best.shares))).toBeLessThanOrEqual(bound);
      const impossible = problemOf(set, 0.5);
      const points = search(impossible, set);
      expect(points.length).toBeLessThanOrEqual(maxEvaluations);
      expect(bestOf(impossible, points)).toBeUndefined();
    }
  });

  test('one measurement that is fifty times too long does not lead it astray', () => {
    const gaps = sets.map((set) => {
      let count = 0;
      const points = search(problemOf(set), set, (point) =>
        (count += 1) === 2 ? { ...point, slowdowns: point.slowdowns.map((one) => 50 * one) } : point,
      );
      const clean = bestOf(problemOf(set), search(problemOf(set), set))!;
      return sum(slowdownsOf(set, bestOf(problemOf(set), points)!.shares)) / sum(slowdownsOf(set, clean.shares)) - 1;
    });
    expect(gaps.sort((one, other) => one - other)[7]).toBeLessThan(0.1);
  });
});

test('nothing is proposed once its measurements are spent', () => {
  const set = [curve(random), curve(random)];
  expect(propose(problemOf(set), [], maxEvaluations, seededRandom(1))).toBeUndefined();
});

describe('beliefs that measurements contradict', () => {
  /** That shares make no difference. */
  const flat = pooledPrior([{ shares: classSpace.shares, slowdowns: classSpace.shares.map(() => 1) }]);
  const slowdowns = ([first, second]: readonly number[]): number[] => [
    Math.max(1, 60 / first!) + first! / 400,
    Math.max(1, 45 / second!),
  ];
  const whole = { smUtil: 0.6, dramUtil: 0.1, l2Util: 0.1 };

  test.each([
    ['flat', flat, Infinity, undefined],
    ['flat, of profiled jobs', flat, Infinity, whole],
    ['flat, with budgets', flat, 1.15, undefined],
    ['flat, of profiled jobs, with budgets', flat, 1.15, whole],
    ['pooled, with budgets that cannot be kept', prior, 1.01, undefined],
  ])(
    'do not end a search with its first points, nor have any measured again: %s',
    (_, belief, maxSlowdown, features) => {
      const job = { prior: belief, weight: 1, maxSlowdown, ...(features && { features }) };
      const problem: SearchProblem = { jobs: [job, job], space: classSpace, hyper: defaultHyper };
      const asked: string[] = [];
      const points: MeasuredPoint[] = [];
      for (;;) {
        const proposal = propose(problem, points, asked.length, seededRandom(1));
        if (proposal === undefined) break;
        const { shares } = proposal;
        // A measurement made again joins the one that there is.
        if (!asked.includes(shares.join())) points.push({ shares, slowdowns: slowdowns(shares) });
        asked.push(shares.join());
      }
      expect(new Set(asked).size).toBe(asked.length);
      expect(asked.length).toBeGreaterThanOrEqual(3);
      expect(asked.length).toBeLessThanOrEqual(maxEvaluations);
    },
  );
});

test('where every allotment was measured there is nothing to propose', () => {
  const few = { shares: [50, 100], maxTotal: Infinity };
  const jobs = [0, 1].map(() => ({ prior, weight: 1, maxSlowdown: Infinity }));
  const problem: SearchProblem = { jobs, space: few, hyper: defaultHyper };
  const points = allotments(few, 2, 100, seededRandom(1)).map((shares) => ({ shares, slowdowns: [1, 1] }));
  expect(points).toHaveLength(4);
  expect(propose(problem, points.slice(1), 3, seededRandom(1))).toBeUndefined();
  expect(propose(problem, points.slice(2), 2, seededRandom(1))).toBeDefined();
  expect(propose(problem, points, 4, seededRandom(1))).toBeUndefined();
});

test('a job that presses hard on its neighbours is given less than one that does not', () => {
  const heavy = { smUtil: 0.9, dramUtil: 0.9, l2Util: 0.9 };
  const light = { smUtil: 0.1, dramUtil: 0.02, l2Util: 0.02 };
  // Own share matters little to the heavy one; the light one suffers from what the other is given.
  const truth = ([first, second]: readonly number[]): number[] => [
    1 + 0.1 / (first! / 100),
    1 + 0.02 / (second! / 100) + 3 * (first! / 100) ** 2,
  ];
  const jobs = [heavy, light].map((features) => ({ prior, weight: 1, maxSlowdown: Infinity, features }));
  const problem: SearchProblem = { jobs, space: classSpace, hyper: defaultHyper };
  const points: MeasuredPoint[] = [];
  for (;;) {
    const proposal = propose(problem, points, points.length, seededRandom(1));
    if (proposal === undefined) break;
    points.push({ shares: proposal.shares, slowdowns: truth(proposal.shares) });
  }
  const all = allotments(classSpace, 2, 1000, seededRandom(1));
  const optimum = Math.min(...all.map((shares) => sum(truth(shares))));
  expect(sum(truth(bestOf(problem, points)!.shares)) / optimum).toBeLessThan(1.1);
  expect(bestOf(problem, points)!.shares[0]).toBeLessThanOrEqual(30);
});

test('what each job can use is measured first, and kept where nothing is better', () => {
  const jobs = [0.45, 0.8].map((smUtil) => ({
    prior,
    weight: 1,
    maxSlowdown: Infinity,
    features: { smUtil, dramUtil: 0.1, l2Util: 0.1 },
  }));
  const problem: SearchProblem = { jobs, space: classSpace, hyper: defaultHyper };
  const first = propose(problem, [], 0, seededRandom(1));
  expect(first?.shares).toEqual([50, 100]);
  const divided = { ...problem, space: { ...classSpace, maxTotal: 100 } };
  expect(sum(propose(divided, [], 0, seededRandom(1))!.shares)).toBeLessThanOrEqual(100);
  // Any bound costs time here, and the neighbour does not care.
  const truth = (shares: readonly number[]): number[] => [Math.max(1, 45 / shares[0]!), Math.max(1, 80 / shares[1]!)];
  const points: MeasuredPoint[] = [];
  for (let next = first; next !== undefined; next = propose(problem, points, points.length, seededRandom(1))) {
    points.push({ shares: next.shares, slowdowns: truth(next.shares) });
  }
  expect(sum(truth(bestOf(problem, points)!.shares))).toBe(2);
});
