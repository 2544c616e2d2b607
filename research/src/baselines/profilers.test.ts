// Searches for request and limit of a function that Dilu's is compared with.
import { expect, test } from '@jest/globals';
import { diluProfiler } from '@gpuwhisk/gpu/algorithms/dilu/profile';
import { profilerCases, search, usual } from '@gpuwhisk/gpu/testing/profiler-cases';
import { gpuletProfiler } from './gpulet.js';
import { traversalProfiler } from './traversal.js';

profilerCases('traversal', traversalProfiler, { trainingLimit: 600, trainingTrials: 10 });
profilerCases('gpulet', gpuletProfiler, { trainingLimit: 800, trainingTrials: 4 });

test('Dilu finds the optimum of all trials with fewer of them', () => {
  for (const sloMs of [21, 40, 80, 160]) {
    const dilu = search(diluProfiler, sloMs, usual);
    const all = search(traversalProfiler, sloMs, usual);
    expect(all.trials).toHaveLength(60);
    expect(dilu.trials.length).toBeLessThanOrEqual(15);
    const [own, best] = [dilu, all].map(({ step }) => ('profile' in step ? step.profile : undefined));
    expect(own).toMatchObject({ keepsGoal: true, request: best!.request, batch: best!.batch });
    expect(own!.ms).toBeLessThanOrEqual(sloMs / 2);
    expect(own!.limit).toBe(Math.min(1000, 2 * own!.request));
  }
});

test('GPUlet takes 16 trials', () => {
  const { step, trials } = search(gpuletProfiler, 80, usual);
  expect(trials).toHaveLength(16);
  expect(step).toMatchObject({ profile: { keepsGoal: true, request: 800 } });
});
