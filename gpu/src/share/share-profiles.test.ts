import { expect, test } from '@jest/globals';
import { defaultHyper } from './quota-search.js';
import type { QuotaJob } from './quotas.js';
import { ShareProfiles } from './priors.js';

const job = (name: string): QuotaJob => ({ function: name, version: '1', batch: 1 });
const at = (share: number): Float64Array => Float64Array.of(Math.log(share), 0, 0, 0);
const features = { smUtil: 0.5, dramUtil: 0.5, l2Util: 0.5 };
const predictor = { slowdown: ({ share }: { share: number }): number => 2 / share };

test('a function is expected to be as its profile was, with a little doubt', () => {
  const profiles = new ShareProfiles();
  expect(profiles.add(job('a'), { gpuType: 'v100', mode: 'mps' }, [8, 4, 3, 2, 1.5, 1])).toBeUndefined();
  const prior = profiles.priorOf({ ...job('a'), features }, { gpuType: 'v100', mode: 'mps' }, predictor);
  expect(Math.exp(prior.mean(at(0.2)))).toBeCloseTo(4, 9);
  expect(prior.deviation(at(0.2))).toBeGreaterThan(0);
  // Another mode, another GPU: nothing is known.
  expect(profiles.priorOf(job('a'), { gpuType: 'v100', mode: 'mig' }).mean(at(0.2))).not.toBeCloseTo(Math.log(4), 3);
  expect(profiles.priorOf(job('a'), { gpuType: 'h100', mode: 'mps' }).mean(at(0.2))).not.toBeCloseTo(Math.log(4), 3);
});

test('one that was not profiled: a predictor where it has features, else functions in general once some are known', () => {
  const profiles = new ShareProfiles();
  const vague = profiles.priorOf(job('new'), { gpuType: 'v100', mode: 'mps' }).mean(at(0.1));
  expect(profiles.hyperOf({ gpuType: 'v100', mode: 'mps' })).toEqual(defaultHyper);
  for (let other = 0; other < 5; other += 1) {
    profiles.add(job(`f${other}`), { gpuType: 'v100', mode: 'mps' }, [1.2, 1.1, 1.1, 1.05, 1, 1]);
  }
  expect(vague).toBeGreaterThan(1);
  expect(Math.exp(profiles.priorOf(job('new'), { gpuType: 'v100', mode: 'mps' }).mean(at(0.1)))).toBeCloseTo(1.2, 9);
  const predicted = profiles.priorOf({ ...job('new'), features }, { gpuType: 'v100', mode: 'mps' }, predictor);
  expect(Math.exp(predicted.mean(at(0.5)))).toBeCloseTo(4, 9);
});

test.each([
  [[8, 4, 3, 2, NaN, 1], 'a slowdown of NaN'],
  [[8, 4, 3, 2, 0.1, 1], 'a slowdown of 0.1'],
  [[8, 4], '2 slowdowns for 6 classes'],
])('%j is refused', (slowdowns, reason) => {
  expect(new ShareProfiles().add(job('a'), { gpuType: 'v100', mode: 'mps' }, slowdowns)).toBe(reason);
});
