import { expect, test } from '@jest/globals';
import { activityLines, attainment } from './activity.js';

const second = (s: number, more: object = {}) => ({
  ...{ at: s * 1000, activations: 2, failed: 0, cold: 0, prewarmed: 0, injected: 0, warm: 2, withSlo: 0, metSlo: 0 },
  ...more,
});

test('seconds become points of five, without those that are not whole', () => {
  const seconds = [9, 10, 11, 12, 13, 14, 15, 16].map((s) =>
    second(s, s === 12 ? { activations: 7, cold: 5, withSlo: 4, metSlo: 3 } : {}),
  );
  const { times, rates, attained } = activityLines(seconds);
  expect([times, rates.activations, rates.cold, rates.warm, attained]).toEqual([[10_000], [3], [1], [2], [75]]);
  expect(attainment([second(1)])).toBeNull();
});
