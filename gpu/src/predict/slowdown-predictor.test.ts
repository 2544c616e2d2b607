import { expect, test } from '@jest/globals';
import { faashareFeatureNames, faashareFeatures } from './slowdown-predictor.js';

test('own use, what the others use within their shares, own share', () => {
  const one = { features: { smUtil: 0.8, dramUtil: 0.4, l2Util: 0.3 }, share: 0.5 };
  const fits = { features: { smUtil: 0.2, dramUtil: 0.1, l2Util: 0.05 }, share: 0.3 };
  const held = { features: { smUtil: 0.6, dramUtil: 0.4, l2Util: 0.2 }, share: 0.3 };
  const row = faashareFeatures(one, [fits, held]);
  expect(row).toHaveLength(faashareFeatureNames.length);
  [0.8, 0.4, 0.3, 0.5, 0.3, 0.15, 0.5].forEach((value, i) => expect(row[i]).toBeCloseTo(value, 12));
});

test('alone nothing is contended', () => {
  const one = { features: { smUtil: 0, dramUtil: 0, l2Util: 0 }, share: 1 };
  expect([...faashareFeatures(one, [])]).toEqual([0, 0, 0, 0, 0, 0, 1]);
});

test('a figure that a workload lacks is what is typical of others; else it adds no contention', () => {
  const one = { features: { smUtil: 0.8 }, share: 1 };
  const others = [
    { features: { smUtil: 0.2, dramUtil: 0.1 }, share: 1 },
    { features: { smUtil: 0.5 }, share: 0.25 },
  ];
  expect([...faashareFeatures(one, others)]).toEqual([0.8, 0, 0, 0.45, 0.1, 0, 1]);
  const row = [...faashareFeatures(one, others, { dramUtil: 0.4, l2Util: 0.2 })];
  [0.8, 0.4, 0.2, 0.45, 0.1 + 0.2, 0.2 + 0.1, 1].forEach((value, at) => expect(row[at]).toBeCloseTo(value, 12));
});
