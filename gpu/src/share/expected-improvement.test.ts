import { expect, test } from '@jest/globals';
import { expectedImprovement, explorationAt, normalCdf, probabilityAtMost } from './gaussian-process.js';

test('improvement where the mean is the best so far is σ/√(2π)', () => {
  expect(expectedImprovement({ mean: 3, variance: 4 }, 3, 0)).toBeCloseTo(2 / Math.sqrt(2 * Math.PI), 6);
});

test('what is certain brings nothing, what is hopeless next to nothing, what is better for sure its gain', () => {
  expect(expectedImprovement({ mean: 1, variance: 0 }, 3, 0)).toBe(0);
  expect(expectedImprovement({ mean: 9, variance: 0.01 }, 3, 0)).toBeLessThan(1e-12);
  expect(expectedImprovement({ mean: 1, variance: 1e-6 }, 3, 0)).toBeCloseTo(2, 6);
});

test('exploration takes from what is near the best and little uncertain', () => {
  const near = { mean: 2.9, variance: 0.01 };
  expect(expectedImprovement(near, 3, 0.1)).toBeLessThan(expectedImprovement(near, 3, 0));
  expect([0, 1, 2].map((step) => explorationAt(step))).toEqual([0.05, 0.05 * 0.7, 0.05 * 0.7 ** 2]);
  expect(explorationAt(2, { start: 1, decay: 0.5 })).toBe(0.25);
});

test('probabilities', () => {
  expect(normalCdf(0)).toBeCloseTo(0.5, 6);
  expect(normalCdf(1.959964)).toBeCloseTo(0.975, 6);
  expect(normalCdf(-1.959964)).toBeCloseTo(0.025, 6);
  expect(probabilityAtMost({ mean: 2, variance: 9 }, Infinity)).toBe(1);
  expect(probabilityAtMost({ mean: 2, variance: 0 }, 2)).toBe(1);
  expect(probabilityAtMost({ mean: 2, variance: 0 }, 1.9)).toBe(0);
  expect(probabilityAtMost({ mean: 2, variance: 9 }, 5)).toBeCloseTo(0.841345, 5);
});
