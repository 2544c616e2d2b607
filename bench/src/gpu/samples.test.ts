import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { addSample, readSamples, withSlowdowns, type Sample } from './samples.js';

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
