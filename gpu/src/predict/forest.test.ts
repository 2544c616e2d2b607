import { describe, expect, test } from '@jest/globals';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { predictForest, trainForest, type ForestOptions } from './forest.js';

const options: ForestOptions = {
  ...{ trees: 30, maxDepth: 12, minLeaf: 1, featureFraction: 1, bootstrap: true, thresholds: 'best', seed: 1 },
};
const kinds = (['best', 'random'] as const).map((thresholds) => ({ ...options, thresholds }));

/** A step in the first feature, a slope in the second, and a third that means nothing. */
function steps(count: number, seed: number): { rows: number[][]; targets: number[] } {
  const random = seededRandom(seed);
  const rows = Array.from({ length: count }, () => [0, 0, 0].map(() => randomFraction(random)));
  return { rows, targets: rows.map(([a, b]) => (a! > 0.5 ? 2 : 1) + 0.2 * b!) };
}

function meanError(forest: ReturnType<typeof trainForest>, rows: number[][], targets: number[]): number {
  return rows.reduce((sum, row, i) => sum + Math.abs(predictForest(forest, row) - targets[i]!), 0) / rows.length;
}

describe.each(kinds)('thresholds $thresholds', (kind) => {
  const { rows, targets } = steps(200, 7);

  test('learns a step and a slope, for rows that it has not seen', () => {
    const unseen = steps(200, 8);
    expect(meanError(trainForest(rows, targets, kind), unseen.rows, unseen.targets)).toBeLessThan(0.06);
  });

  test('one seed, one forest; another seed, another', () => {
    expect(trainForest(rows, targets, kind)).toEqual(trainForest(rows, targets, kind));
    expect(trainForest(rows, targets, { ...kind, seed: 2 })).not.toEqual(trainForest(rows, targets, kind));
  });

  test('the importances tell the feature that decides from the one that means nothing', () => {
    const [step, slope, nothing] = trainForest(rows, targets, kind).importances as unknown as [number, number, number];
    expect(step + slope + nothing).toBeCloseTo(1, 9);
    expect(step).toBeGreaterThan(0.6);
    expect(nothing).toBeLessThan(slope);
  });

  test('no leaf is deeper or smaller than allowed', () => {
    const stump = trainForest(rows, targets, { ...kind, maxDepth: 1, bootstrap: false });
    expect(stump.depth).toBe(1);
    expect(stump.value.length).toBeLessThanOrEqual(3 * kind.trees);
    const whole = trainForest(rows, targets, { ...kind, minLeaf: 101 });
    expect(whole.depth).toBe(0);
    expect(whole.value.length).toBe(kind.trees);
  });

  test('constant rows give one leaf, whose value is the mean of the targets', () => {
    const forest = trainForest([[1], [1], [1]], [1, 2, 9], { ...kind, bootstrap: false });
    expect(predictForest(forest, [1])).toBeCloseTo(4, 12);
    expect([...forest.importances]).toEqual([0]);
  });
});

test('a tree that may ask everything repeats what it has seen', () => {
  const { rows, targets } = steps(100, 3);
  const forest = trainForest(rows, targets, { ...options, trees: 1, maxDepth: 100, bootstrap: false });
  expect(meanError(forest, rows, targets)).toBeLessThan(1e-12);
});

test.each([
  ['no rows', [], []],
  ['a target too few', [[1], [2]], [1]],
  ['rows of unequal length', [[1, 2], [1]], [1, 2]],
  ['a feature that is not a number', [[1], [NaN]], [1, 2]],
  ['an infinite target', [[1], [2]], [1, Infinity]],
])('%s is refused', (_, rows, targets) => {
  expect(() => trainForest(rows, targets, options)).toThrow(RangeError);
});

test('an input that is not a number still gives a prediction', () => {
  const { rows, targets } = steps(50, 3);
  expect(Number.isFinite(predictForest(trainForest(rows, targets, options), [NaN, NaN, NaN]))).toBe(true);
});
