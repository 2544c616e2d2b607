import { describe, expect, test } from '@jest/globals';
import { driverWorkloads, planSamples } from './plan.js';

describe('the plan of co-location samples', () => {
  const plan = planSamples(driverWorkloads, { count: 1000, seed: 1, shares: true });

  test('has every workload alone at every share class, then sets of 2 to 8', () => {
    const ofWays = (ways: number): number => plan.filter(({ members }) => members.length === ways).length;
    expect([1, 2, 4, 6, 8].map(ofWays)).toEqual([36, 400, 300, 150, 150]);
    const percents = new Set(plan.flatMap(({ members }) => members.map(({ percent }) => percent)));
    expect([...percents].sort((a, b) => a - b)).toEqual([10, 20, 30, 50, 70, 100]);
  });

  test('names each sample once, and the same for the same seed', () => {
    expect(new Set(plan.map(({ id }) => id)).size).toBe(plan.length);
    expect(planSamples(driverWorkloads, { count: 1000, seed: 1, shares: true })).toEqual(plan);
    expect(planSamples(driverWorkloads, { count: 1000, seed: 2, shares: true })).not.toEqual(plan);
  });

  test('has no shares without MPS', () => {
    const without = planSamples(driverWorkloads, { count: 20, seed: 1, shares: false });
    expect(without.every(({ members }) => members.every(({ percent }) => percent === 100))).toBe(true);
  });
});
