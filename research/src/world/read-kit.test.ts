import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { addSample } from '@gpuwhisk/bench/gpu/sample-file';
import type { Sample } from '@gpuwhisk/bench/gpu/sample-file';
import { readMeasured } from './sources.js';
import { plantedFiles, writeFiles } from './testing/planted.js';
import { Truth } from './truth.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gpu-samples-'));
  await writeFiles(folder, plantedFiles());
});
afterEach(() => rm(folder, { recursive: true }));

const names = ['matmul:512', 'matmul:1024', 'stream:64', 'stream:128', 'spin:8', 'spin:16'];
const sampleOf = (members: [string, number, number][], more: Partial<Sample> = {}): Sample => ({
  ...{ id: `mps/${members.map(([name, percent]) => `${name}@${percent}`).join('+')}#0` },
  ...{ device: 'NVIDIA X1', mode: 'mps', simulated: false, activity: {} },
  members: members.map(([workload, percent, medianMs]) => ({
    ...{ workload, percent, medianMs, iterations: 3 },
    ...{ p95Ms: medianMs, p99Ms: medianMs, meanMs: medianMs, perS: 1000 / medianMs },
  })),
  ...more,
});
const file = 'gpu-nvidia-x1-samples.jsonl';
const plant = async (...samples: Sample[]): Promise<void> => {
  for (const sample of samples) await addSample(join(folder, file), sample);
};
const read = () => readMeasured(folder, { licensed: false, kit: folder });

test('samples of the kit are one more GPU type, which a truth is fitted to', async () => {
  await plant(...names.map((name, at) => sampleOf([[name, 100, 10 + at]])));
  const pairs = names.flatMap((a, i) =>
    names.slice(i).map((b, j): [string, number, number][] => [
      [a, 100, 2 * (10 + i)],
      [b, 100, 3 * (10 + i + j)],
    ]),
  );
  await plant(...pairs.map((members) => sampleOf(members)));
  const { sets, alone, unused } = await read();
  expect(unused.map((one) => one.file)).not.toContain(file);
  const truth = new Truth('nvidia-x1', 'mps', 'T1', sets, alone);
  const [a = '', b = ''] = alone.filter(({ gpu }) => gpu === 'nvidia-x1').map(({ workload }) => workload);
  const [first, second] = truth.answer([
    { workload: a, share: 1 },
    { workload: b, share: 1 },
  ]);
  expect(first).toEqual({ slowdown: 2, extrapolated: false, rows: [`${file}:mps/matmul:512@100+matmul:1024@100#0`] });
  expect(second?.slowdown).toBe(3);
});

test('samples that tell nothing are skipped by their place and reason', async () => {
  await plant(
    sampleOf([['matmul:512', 100, 10]]),
    sampleOf([
      ['matmul:512', 100, 20],
      ['spin:8', 100, 20],
    ]),
    sampleOf([
      ['matmul:512', 50, 20],
      ['matmul:512', 50, 20],
    ]),
    sampleOf([['stream:64', 100, 10]], { simulated: true }),
    sampleOf([['stream:128', 100, 10]], { failed: 'out of memory' }),
  );
  const { skipped } = await read();
  expect(skipped.filter(({ row }) => row.startsWith(file)).map(({ why }) => why)).toEqual([
    'no time alone of spin:8 at 100 %',
    'no time alone of matmul:512 at 50 %',
    'the device is simulated',
    'the sample failed: out of memory',
  ]);
});

test.each([
  ['cut off', '{"id":"a"', 'is cut off'],
  ['of another form', '{"id":"a"}\n', 'Line 2 of'],
])('a file that is %s is named and left out', async (_, tail, why) => {
  await plant(sampleOf([['matmul:512', 100, 10]]));
  await writeFile(join(folder, file), tail, { flag: 'a' });
  const { sets, unused } = await read();
  expect(unused.find((one) => one.file === file)?.why).toContain(why);
  expect(sets.some(({ source }) => source === 'kit')).toBe(false);
});
