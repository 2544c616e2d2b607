import { expect, test } from '@jest/globals';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { boundOutliers, fitSlowdowns, predictSlowdown, fitSmooth, predictSmooth } from './slowdown-regression.js';

function drawn(count: number, width: number, seed: number): Float64Array[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, () => Float64Array.from({ length: width }, () => randomFraction(random)));
}

test('a smooth surface is learned closely, and continued as a plane', () => {
  const surface = ([a, b]: Float64Array): number => Math.sin(3 * a!) + b!;
  const rows = drawn(150, 2, 1);
  const smooth = fitSmooth(rows, rows.map(surface), seededRandom(1));
  for (const row of drawn(50, 2, 2)) expect(predictSmooth(smooth, row)).toBeCloseTo(surface(row), 1);
  expect(predictSmooth(smooth, [1e9, 0.5])).toBe(predictSmooth(smooth, [1e10, 0.5]));
});

test('the same rows many times over are one row', () => {
  const rows = Array.from({ length: 40 }, (_, i) => [i % 2, 7]);
  const smooth = fitSmooth(
    rows,
    rows.map(([x]) => x!),
    seededRandom(1),
  );
  expect(predictSmooth(smooth, [1, 7])).toBeCloseTo(1, 1);
  expect(predictSmooth(smooth, [0, 7])).toBeCloseTo(0, 1);
});

test('one value for all is that value everywhere', () => {
  const regression = fitSlowdowns([[1], [1], [1]], [1.5, 1.5, 1.5], 1);
  expect(predictSlowdown(regression, [4])).toBeCloseTo(1.5, 6);
});

test('only what is far from its neighbours is moved', () => {
  const rows = drawn(200, 2, 3);
  const random = seededRandom(4);
  const targets = Float64Array.from(rows, ([a]) => a! + 0.02 * randomFraction(random));
  const poisoned = targets.map((target, i) => (i === 17 ? 50 : target));
  const bounded = boundOutliers(rows, poisoned);
  expect(Math.abs(bounded[17]! - targets[17]!)).toBeLessThan(1);
  expect(bounded.filter((value, i) => i !== 17 && value !== targets[i]!)).toHaveLength(0);
});

test.each([
  [[], []],
  [[[1]], [0]],
  [[[1]], [NaN]],
  [[[NaN]], [1]],
])('rows %j with slowdowns %j are refused', (rows, slowdowns) => {
  expect(() => fitSlowdowns(rows, slowdowns, 1)).toThrow(RangeError);
});
