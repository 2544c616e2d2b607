import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { burstTimes, longestBelow, ratesBySecond } from './bursts.js';

test('bursts have all their requests in order within the span, and differ more with fewer stages', () => {
  const settings = { requests: 20_000, spanMs: 40_000, intervals: 200 };
  const variance = (stages: number): number => {
    const times = burstTimes({ ...settings, stages }, seededRandom(1));
    expect(times).toHaveLength(20_000);
    expect(times.every((at, i) => at >= (times[i - 1] ?? 0) && at < 40_000)).toBe(true);
    const counts = Array.from({ length: 200 }, () => 0);
    for (const at of times) counts[Math.floor(at / 200)]! += 1;
    return counts.reduce((sum, count) => sum + (count / 100 - 1) ** 2, 0) / 200;
  };
  // An Erlang distribution's relative variance is one over its stages; a hundred requests add a hundredth.
  expect(variance(2)).toBeGreaterThan(0.35);
  expect(variance(8)).toBeGreaterThan(0.09);
  expect(variance(8)).toBeLessThan(0.18);
});

test('rates of seconds count parts of steps, and are unknown before the first and after the last end', () => {
  const ends = [0, 250, 500, 750, 1000, 2000, 2500, 3000];
  expect(ratesBySecond(ends, 0, 2999)).toEqual([4, 1]);
  expect(ratesBySecond(ends, 500, 2600)).toEqual([2.5, 1.5]);
  expect(ratesBySecond(ends, -500, 500)).toEqual([NaN]);
  expect(ratesBySecond(ends, 2500, 3500)).toEqual([NaN]);
});

test('the longest series below a value is found at the beginning, within and at the end', () => {
  expect(longestBelow([], 1)).toBe(0);
  expect(longestBelow([1, 2], 1)).toBe(0);
  expect(longestBelow([0, 0, 2, 0], 1)).toBe(2);
  expect(longestBelow([2, 0, 2, 0, 0, 0], 1)).toBe(3);
});
