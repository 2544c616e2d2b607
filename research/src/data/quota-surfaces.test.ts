import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { drawSet, folds, leastSum, slowdownAt, sumAt, surfaces } from './quota-surfaces.js';

const curve = (slowdowns: number[]) => ({ shares: [20, 40, 60, 80, 100], slowdowns });

test('dynamic programming finds what trying everything finds', () => {
  const first = curve([5, 3, 2, 1.5, 1]);
  const { shares } = first;
  const set = [first, curve([1.2, 1.1, 1.05, 1.3, 1]), curve([4, 3.9, 1.2, 1, 1])];
  const all = shares.flatMap((x) => shares.flatMap((y) => shares.map((z) => [x, y, z])));
  const possible = all.filter((one) => one.reduce((sum, share) => sum + share, 0) <= 100);
  expect(leastSum(set, shares)).toBeCloseTo(Math.min(...possible.map((one) => sumAt(set, one))), 12);
  expect(leastSum(set, [20, 40])).toBeCloseTo(Math.min(sumAt(set, [40, 20, 20]), sumAt(set, [40, 20, 40])), 12);
});

test('rows become curves over the time at 100 %; those with gaps are left out', () => {
  const rows = [
    { model: 'a', batch: 1, share: 100, ms: 2 },
    { model: 'a', batch: 1, share: 50, ms: 3 },
    { model: 'b', batch: 1, share: 50, ms: 3 },
  ];
  expect(surfaces(rows)).toEqual([{ model: 'a', batch: 1, shares: [50, 100], slowdowns: [1.5, 1] }]);
  expect(() => surfaces(rows).map((surface) => slowdownAt(surface, 70))).toThrow(RangeError);
});

test('models that are left out are in no other part, and sets have a model once', () => {
  const models = Array.from({ length: 12 }, (_, at) => `m${at}`);
  const parts = folds(models, 5, seededRandom(1));
  expect(parts.flat().sort()).toEqual([...models].sort());
  const from = models.flatMap((model) => [1, 2].map((batch) => ({ model, batch, ...curve([1, 1, 1, 1, 1]) })));
  const set = drawSet(from, 4, seededRandom(2));
  expect(new Set(set.map(({ model }) => model)).size).toBe(4);
});

test('a set of more jobs than there are models is refused', () => {
  const from = ['a', 'b'].flatMap((model) => [1, 2].map((batch) => ({ model, batch, ...curve([1, 1, 1, 1, 1]) })));
  expect(() => drawSet(from, 3, seededRandom(1))).toThrow('Sets of 3 jobs need 3 models, and 2 are there.');
  expect(drawSet(from, 2, seededRandom(1))).toHaveLength(2);
});
