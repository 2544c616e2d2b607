import { expect, test } from '@jest/globals';
import { likeliest, logMarginalLikelihood, matern52, posteriorOf } from './gaussian-process.js';
import type { Prior } from './gaussian-process.js';

const unit: Prior = { mean: () => 0, deviation: () => 1 };
const at = (x: number): Float64Array => Float64Array.of(x);
const hyper = { lengths: [1], noise: 0.1 };

test('two points: mean and variance are those of the formula for two', () => {
  const [x, y, noise] = [matern52(1), matern52(0.5), 0.01];
  const { mean, variance } = posteriorOf(unit, hyper, { inputs: [at(0), at(1)], values: [2, -1] })(at(0.5));
  const determinant = (1 + noise) ** 2 - x * x;
  const weight = (y * (1 + noise) - y * x) / determinant;
  expect(mean).toBeCloseTo(weight * 2 - weight, 10);
  expect(variance).toBeCloseTo(1 - 2 * weight * y, 10);
});

test('far from all measurements the prior holds; near one, the measurement, however often it was repeated', () => {
  const prior: Prior = { mean: (input) => 5 + input[0]!, deviation: () => 2 };
  const posterior = posteriorOf(prior, hyper, { inputs: [at(0), at(0), at(0)], values: [7, 7, 7] });
  expect(posterior(at(1000))).toEqual({ mean: 1005, variance: 4 });
  expect(posterior(at(0)).mean).toBeCloseTo(7, 1);
  expect(posterior(at(0)).variance).toBeLessThan(0.01);
  const exact = posteriorOf(prior, { lengths: [1], noise: 0 }, { inputs: [at(0), at(0)], values: [7, 7] });
  expect(exact(at(0)).mean).toBeCloseTo(7, 6);
});

test('without a measurement the prior is the posterior', () => {
  expect(posteriorOf(unit, hyper, { inputs: [], values: [] })(at(3))).toEqual({ mean: 0, variance: 1 });
});

test('the likelihood of one value is that of a normal distribution', () => {
  const log = logMarginalLikelihood(unit, hyper, { inputs: [at(0)], values: [0.5] });
  expect(log).toBeCloseTo(-0.25 / (2 * 1.01) - Math.log(2 * Math.PI * 1.01) / 2, 12);
});

test('of several lengths the likeliest is that by which the values change', () => {
  const inputs = Array.from({ length: 12 }, (_, step) => at(step / 4));
  const candidates = [0.05, 1, 50].map((length) => ({ lengths: [length], noise: 0.02 }));
  const smooth = { prior: unit, inputs, values: inputs.map((input) => Math.sin(2 * input[0]!)) };
  expect(likeliest(candidates, [smooth]).lengths).toEqual([1]);
  const rough = { prior: unit, inputs, values: inputs.map((_, step) => (step % 2 ? 1 : -1)) };
  expect(likeliest(candidates, [rough]).lengths).toEqual([0.05]);
  expect(() => likeliest([], [smooth])).toThrow(RangeError);
});
