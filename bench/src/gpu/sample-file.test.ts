import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { addSample, readSamples, resumeSamples, withSlowdowns, type Sample } from './sample-file.js';

const sampleOf = (id: string, medianMs: number): Sample => ({
  id,
  device: 'none',
  mode: 'mps',
  simulated: true,
  members: [
    {
      workload: 'matmul:512',
      percent: 50,
      iterations: 3,
      medianMs,
      p95Ms: medianMs,
      p99Ms: medianMs,
      meanMs: medianMs,
      perS: 1000 / medianMs,
    },
  ],
  activity: {},
});

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gpuwhisk-samples-'));
  path = join(folder, 'samples.jsonl');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test('a file is continued after its last whole line', async () => {
  expect(await resumeSamples(path)).toEqual(new Map());
  await addSample(path, sampleOf('a', 1));
  const torn = `${await readFile(path, 'utf8')}{"id":"cut of`;
  await writeFile(path, torn);
  expect([...(await readSamples(path)).keys()]).toEqual(['a']);
  expect(await readFile(path, 'utf8')).toBe(torn);
  expect([...(await resumeSamples(path)).keys()]).toEqual(['a']);
  await addSample(path, sampleOf('b', 2));
  expect([...(await readSamples(path)).keys()]).toEqual(['a', 'b']);
});

test.each(['no JSON', '{"id":"a"}', '{"id":"a","device":"d","mode":"mps","activity":{},"members":[{"percent":50}]}'])(
  'the line %p is refused with its number',
  async (line) => {
    await addSample(path, sampleOf('a', 1));
    await writeFile(path, `${await readFile(path, 'utf8')}${line}\n`);
    await expect(readSamples(path)).rejects.toThrow(`Line 2 of ${path} is no sample`);
  },
);

test('slowdowns relate to the workload alone on the whole device in the same mode', () => {
  const known = new Map([['mps/matmul:512@100#0', sampleOf('mps/matmul:512@100#0', 2)]]);
  expect(withSlowdowns(sampleOf('b', 5), known).members[0]?.slowdown).toBe(2.5);
  expect(withSlowdowns({ ...sampleOf('b', 5), mode: 'timeslice' }, known).members[0]?.slowdown).toBeUndefined();
});
