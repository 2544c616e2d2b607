import { expect, test } from '@jest/globals';
import { faashareFeatures } from '../predict/slowdown-predictor.js';
import type { CoLocated } from '../predict/slowdown-predictor.js';
import { fittedHyper, pooledPrior, predictedPrior } from './priors.js';
import { defaultHyper } from './quota-search.js';
import { inputOf } from './surrogate.js';

const shares = [10, 50, 100];
const at = (share: number): Float64Array => Float64Array.of(Math.log(share / 100), 0, 0, 0);

test('a pool gives mean and deviation of the logarithms, between its shares too', () => {
  const prior = pooledPrior([
    { shares, slowdowns: [4, 2, 1] },
    { shares, slowdowns: [1, 1, 1] },
  ]);
  expect(prior.mean(at(10))).toBeCloseTo(Math.log(2), 12);
  expect(prior.deviation(at(10))).toBeCloseTo(Math.log(2), 12);
  expect(prior.mean(at(100))).toBe(0);
  expect(prior.deviation(at(100))).toBeCloseTo(0.03, 12);
  const between = prior.mean(at(Math.sqrt(10 * 50)));
  expect(between).toBeCloseTo((prior.mean(at(10)) + prior.mean(at(50))) / 2, 12);
  expect(prior.mean(at(5))).toBe(prior.mean(at(10)));
});

test('curves that do not belong together are refused', () => {
  expect(() => pooledPrior([])).toThrow(RangeError);
  expect(() =>
    pooledPrior([
      { shares, slowdowns: [3, 2, 1] },
      { shares: [20, 50, 100], slowdowns: [3, 2, 1] },
    ]),
  ).toThrow(RangeError);
});

test('the length that is fitted to steep and shallow lines is one over which they do not bend', () => {
  const curves = [0.1, 0.4, 0.7, 1].map((slope) => ({
    shares: [5, 10, 20, 30, 50, 70, 100],
    slowdowns: [5, 10, 20, 30, 50, 70, 100].map((share) => (100 / share) ** slope),
  }));
  const { lengths, noise } = fittedHyper(curves, defaultHyper);
  expect(lengths[0]).toBeGreaterThan(1);
  expect(lengths.slice(1)).toEqual(defaultHyper.lengths.slice(1));
  expect(noise).toBeLessThanOrEqual(0.02);
});

test('the prior of a predictor is what it says of the set', () => {
  // A predictor that shows what it was given.
  const slowdown = (one: CoLocated, others: readonly CoLocated[]): number => {
    const [own, , , sm, dram, l2, share] = faashareFeatures(one, others);
    return 1 + own! + 10 * sm! + 100 * dram! + 1000 * l2! + 10_000 * share!;
  };
  const features = [0.9, 0.8, 0.7].map((util) => ({ smUtil: util, dramUtil: util / 2, l2Util: util / 4 }));
  const jobs = features.map((one) => ({ features: one }));
  const given = [20, 30, 50];
  const prior = predictedPrior({ slowdown }, features[0]!);
  const others = [1, 2].map((job) => ({ features: features[job]!, share: given[job]! / 100 }));
  expect(prior.mean(inputOf(jobs, given, 0))).toBeCloseTo(
    Math.log(slowdown({ features: features[0]!, share: 0.2 }, others)),
    9,
  );
});
