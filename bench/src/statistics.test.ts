import { describe, expect, test } from '@jest/globals';
import { median, percentile, slope, spread, seededChoice } from './statistics.js';

describe('percentile', () => {
  test('interpolates between neighbours', () => {
    expect(percentile([10, 20, 30, 40, 50], 50)).toBe(30);
    expect(percentile([10, 20], 25)).toBe(12.5);
    expect(percentile([7], 99)).toBe(7);
  });

  test('does not mind the order, and leaves it', () => {
    const values = [3, 1, 2];
    expect(percentile(values, 100)).toBe(3);
    expect(values).toEqual([3, 1, 2]);
  });

  test('refuses no values', () => {
    expect(() => percentile([], 50)).toThrow(RangeError);
  });
});

test('median of an even count is the mean of the middle two', () => {
  expect(median([1, 100, 2, 3])).toBe(2.5);
});

test('spread', () => {
  expect(spread([5, 1, 9])).toEqual([1, 9]);
});

test('slope of points on a line, around one, and of points that have none', () => {
  expect(
    slope([
      [0, 5],
      [2, 9],
      [4, 13],
    ]),
  ).toBe(2);
  expect(
    slope([
      [0, 1],
      [1, 0],
      [2, 0],
      [3, 1],
    ]),
  ).toBe(0);
  expect(slope([[3, 7]])).toBe(0);
});

test('the same seed gives the same choices, another seed others', () => {
  const take = (seed: number): number[] => Array.from({ length: 20 }, seededChoice(seed, 1000));
  expect(take(1)).toEqual(take(1));
  expect(take(1)).not.toEqual(take(2));
});

test.each([0, 1, 2, 12345])('choices of seed %d are near uniform', (seed) => {
  const counts = new Array<number>(10).fill(0);
  const choose = seededChoice(seed, 10);
  for (let draw = 0; draw < 10_000; draw += 1) counts[choose()] = (counts[choose()] ?? 0) + 1;
  for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(150);
});
