import { expect, test } from '@jest/globals';
import type { CoLocated } from '../predict/slowdown-predictor.js';
import { guardrail } from './quotas.js';

/** In proportion below the use of SMs; a tenth more for each neighbour's whole GPU. */
const predictor = {
  slowdown: ({ features, share }: CoLocated, others: readonly CoLocated[]): number =>
    Math.max(1, features.smUtil / share) + others.reduce((sum, other) => sum + 0.1 * other.share, 0),
};
const job = (name: string, smUtil: number, soloMs = 10) => ({
  function: name,
  version: '1',
  batch: 1,
  soloMs,
  features: { smUtil, dramUtil: 0.1, l2Util: 0.1 },
});

test('the smallest classes that leave a tenth of every budget', () => {
  // 0.8 / 0.5 + 0.02 = 1.62 is within 1.8, 0.8 / 0.3 is not; 0.1 / 0.1 + 0.05 within 1.8.
  expect(guardrail([job('a', 0.8), job('b', 0.1)], [20, 20], predictor)).toEqual({
    shares: [0.5, 0.1],
    source: 'guardrail',
    unmet: [],
  });
});

test('a budget that no class keeps gets the whole GPU and is told', () => {
  const { shares, unmet } = guardrail([job('a', 0.8), job('b', 0.1)], [5, 20], predictor);
  expect(shares).toEqual([1, 0.1]);
  expect(unmet).toEqual([0]);
});

test('jobs without a budget have an equal part', () => {
  const set = ['a', 'b', 'c'].map((name) => job(name, 0.5));
  expect(guardrail(set, [Infinity, Infinity, Infinity], predictor)).toMatchObject({
    shares: [0.3, 0.3, 0.3],
    unmet: [],
  });
  expect(guardrail(set.slice(0, 1), [Infinity], predictor).shares).toEqual([1]);
});

test('a job that was not profiled has an equal part, and its budget is not known to be kept', () => {
  const unprofiled = { function: 'b', version: '1', batch: 1, soloMs: 10 };
  const { shares, unmet } = guardrail([job('a', 0.1), unprofiled], [20, 20], predictor);
  expect(shares).toEqual([0.1, 0.5]);
  expect(unmet).toEqual([1]);
});

test('more jobs than the smallest class divides the GPU into have that', () => {
  const set = Array.from({ length: 12 }, (_, at) => job(`f${at}`, 0.5));
  expect(new Set(guardrail(set, new Array<number>(12).fill(Infinity), predictor).shares)).toEqual(new Set([0.1]));
});
