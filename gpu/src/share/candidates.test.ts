import { expect, test } from '@jest/globals';
import { shareClasses } from '@gpuwhisk/common/gpu';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { allotments } from './quota-search.js';

const classes = { shares: shareClasses, maxTotal: 100 };
const sum = (shares: readonly number[]): number => shares.reduce((total, share) => total + share, 0);

test('all ways to share a GPU, each once', () => {
  const all = allotments(classes, 3, 1000, seededRandom(1));
  const brute = shareClasses.flatMap((a) => shareClasses.flatMap((b) => shareClasses.map((c) => [a, b, c])));
  expect(all).toEqual(brute.filter((shares) => sum(shares) <= 100));
});

test('where even the smallest shares are more than the GPU, every job has the smallest', () => {
  expect(allotments(classes, 12, 1000, seededRandom(1))).toEqual([new Array(12).fill(10)]);
});

test('of too many, as many as are wanted are drawn evenly, the same for the same seed', () => {
  const space = { shares: Array.from({ length: 20 }, (_, at) => 5 * (at + 1)), maxTotal: 100 };
  const drawn = allotments(space, 2, 100, seededRandom(5));
  expect(drawn).toHaveLength(100);
  expect(drawn.every((shares) => shares.length === 2 && sum(shares) <= 100)).toBe(true);
  expect(drawn).toEqual(allotments(space, 2, 100, seededRandom(5)));
  const firsts = allotments(space, 2, 189, seededRandom(6)).map(([first]) => first!);
  // 190 ways in all; 19 of them start with 5 %, one with 95 %.
  expect(firsts.filter((share) => share === 5).length).toBeGreaterThan(8);
  expect(firsts.filter((share) => share === 95).length).toBeLessThan(6);
});

test('nothing to share is refused', () => {
  expect(() => allotments({ shares: [], maxTotal: 100 }, 2, 10, seededRandom(1))).toThrow(RangeError);
  expect(() => allotments(classes, 0, 10, seededRandom(1))).toThrow(RangeError);
});
