import { expect, test } from '@jest/globals';
import { predictForest, trainForest } from '@gpuwhisk/gpu/predict/forest';
import { squared } from '@gpuwhisk/gpu/predict/split-search';
import { faashareForest } from './faashare-forest.js';

const options = { ...faashareForest, seed: 1 };

test('the median of a leaf ignores one mad target, a mean does not', () => {
  const rows = Array.from({ length: 9 }, () => [0]).concat([[1], [1], [1]]);
  const targets = [1, 1, 1, 1, 1, 1, 1, 1, 1e6, 2, 2, 2];
  const one = { ...options, trees: 1, bootstrap: false, minLeaf: 3 };
  expect(predictForest(trainForest(rows, targets, one), [0])).toBe(1);
  expect(predictForest(trainForest(rows, targets, { ...one, impurity: squared }), [0])).toBeGreaterThan(1e5);
});

test('constant rows give one leaf, whose value is the median of the targets', () => {
  const forest = trainForest([[1], [1], [1]], [1, 2, 9], { ...options, bootstrap: false });
  expect(predictForest(forest, [1])).toBe(2);
});
