import { describe, expect, test } from '@jest/globals';
import { median, percentile, slope, spread } from './statistics.js';

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
