import { describe, expect, test, afterEach, beforeEach } from '@jest/globals';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { driverWorkloads, planSamples, addSample, readSamples, withSlowdowns, type Sample } from './plan.js';

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

const sampleOf = (id: string, medianMs: number): Sample => ({
  id,
  device: 'none',
  mode: 'mps',
  simulated: true,
  members: [{ workload: 'matmul:512', percent: 50, iterations: 3, medianMs, p95Ms: medianMs, meanMs: medianMs }],
  activity: {},
});

describe('a file of samples', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gpuwhisk-samples-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  test('is gone on with behind what was written whole', async () => {
    const path = join(folder, 'samples.jsonl');
    expect(await readSamples(path)).toEqual(new Map());
    await addSample(path, sampleOf('a', 1));
    await writeFile(path, `${await readFile(path, 'utf8')}{"id":"cut of`);
    expect([...(await readSamples(path)).keys()]).toEqual(['a']);
    await addSample(path, sampleOf('b', 2));
    expect([...(await readSamples(path)).keys()]).toEqual(['a', 'b']);
  });

  test('tells slowdowns against alone at all of the SMs, where that was measured', () => {
    const known = new Map([['matmul:512@100#0', sampleOf('matmul:512@100#0', 2)]]);
    expect(withSlowdowns(sampleOf('b', 5), known).members[0]?.slowdown).toBe(2.5);
    expect(withSlowdowns(sampleOf('b', 5), new Map()).members[0]?.slowdown).toBeUndefined();
  });
});
