import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { BenchDataError } from '@gpuwhisk/bench/data/csv';
import { resultsDir } from '../results.js';
import { overBestPair, partnerGain, sharing, workOf } from './headroom.js';
import { licensedSources, readMeasured } from './sources.js';
import { plantedFiles, plantedSlices, writeFiles } from './testing/planted.js';
import { Truth } from './truth.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bench-data-'));
  await writeFiles(folder, plantedFiles());
});
afterEach(() => rm(folder, { recursive: true }));

const pairs = 'interference/kace_v100_pairs.csv';
const reason = async (file: string): Promise<string | undefined> =>
  (await readMeasured(folder, { licensed: false })).unused.find((one) => one.file === file)?.why;

describe('bad input', () => {
  test('files that are missing are named, the others are read', async () => {
    const { sets, unused } = await readMeasured(folder, { licensed: false });
    expect(sets.length).toBeGreaterThan(0);
    expect(unused.map(({ file }) => file)).toContain('interference/gavel_pairs.csv');
    expect(unused.map(({ file }) => file)).not.toContain(pairs);
  });

  test.each([
    ['cut off in a number', (text: string) => text.slice(0, -7), 'is cut off'],
    ['cut off in a line that ends', (text: string) => `${text.slice(0, -40)}\n`, 'fields instead of'],
    ['without a column', (text: string) => text.replace('thr_a_sps', 'rate_a'), "no column 'thr_a_sps'"],
    ['with NaN', (text: string) => text.replace(/,mps,model0,8,/, ',mps,model0,NaN,'), "'NaN' is no number"],
    ['with a blank line', (text: string) => text.replace('\n', '\n\n'), 'has a blank line'],
    ['with a blank batch', (text: string) => text.replace(/,mps,model0,8,/, ',mps,model0,,'), 'a blank instead of'],
  ])('a file %s is refused by its name', async (_, spoil, why) => {
    await writeFile(join(folder, pairs), spoil(await readFile(join(folder, pairs), 'utf8')));
    expect(await reason(pairs)).toContain(why);
    const { sets } = await readMeasured(folder, { licensed: false });
    expect(sets.some(({ members }) => members.length === 3)).toBe(true);
    expect(sets.some(({ members }) => members.length === 2)).toBe(false);
  });

  test('rows that are impossible are skipped by their place', async () => {
    const text = await readFile(join(folder, pairs), 'utf8');
    const lines = text.split('\n');
    lines[1] = (lines[1] ?? '').replace(/,100,[\d.]+,/, ',100,0,');
    lines[2] = (lines[2] ?? '').replace(',mps,', ',sometimes,');
    await writeFile(join(folder, pairs), lines.join('\n'));
    const { skipped } = await readMeasured(folder, { licensed: false });
    expect(skipped.map(({ row }) => row)).toEqual([`${pairs}:2`, `${pairs}:3`]);
  });

  test('a folder without any usable file is refused', async () => {
    const empty = await mkdtemp(join(tmpdir(), 'bench-data-'));
    await expect(readMeasured(empty, { licensed: true })).rejects.toThrow(BenchDataError);
    await rm(empty, { recursive: true });
  });
});

describe('the licensed subset', () => {
  test('other data sets are not read', async () => {
    await expect(readMeasured(folder, { licensed: true })).rejects.toThrow('No measured sets');
    await writeFiles(folder, plantedSlices());
    const { sets } = await readMeasured(folder, { licensed: true });
    expect([...new Set(sets.map(({ source }) => source))]).toEqual(['parvagpu']);
    expect(licensedSources).toContain('parvagpu');
    expect(licensedSources).not.toContain('kace');
  });

  test('processes in a slice: contention against one process there, stretch against seven slices', async () => {
    await writeFiles(folder, plantedSlices());
    const { sets, alone, skipped } = await readMeasured(folder, { licensed: true });
    const [member] = sets.find(({ members }) => members.length === 2 && members[0]?.share === 1 / 7)?.members ?? [];
    expect(member?.contention).toBeCloseTo(1.1, 9);
    expect(member?.stretch).toBeCloseTo(7, 9);
    expect(skipped.map(({ why }) => why)).toContain('the processes do not fit into the memory of the slice');
    const truth = new Truth('a100-80', 'mig', 'T1', sets, alone);
    const whole = { workload: member?.workload ?? '', share: 1 };
    expect(() => truth.answer([{ ...whole, share: 1 / 7 }, whole])).toThrow('in one slice');
  });
});

test('the saved result has errors and headroom, and no value of a workload', async () => {
  const { metrics } = JSON.parse(await readFile(join(resultsDir, 'world.json'), 'utf8')) as { metrics: object };
  const form =
    /^(sets|sides|log|logP90|mae|maeVsMultiplied|logVsMultiplied|repeats|repeatMedian|repeatP90|alone|work|partner|quota|overPair|slices|bracket|rows|files)\./;
  for (const name of Object.keys(metrics)) {
    expect(name).toMatch(form);
    expect(name).not.toMatch(/bert|resnet|whisper|wav2vec|alexnet|vgg|llama/i);
  }
});

describe('headroom', () => {
  test('work is the sum of relative speeds, or the summed times alone over the makespan', async () => {
    const { sets } = await readMeasured(folder, { licensed: false });
    const half = sets.find(({ members }) => members.length === 2 && members[0]?.share === 0.5);
    expect(half && workOf(half)).toBeCloseTo(1 / 1.02, 9);
    expect(half && workOf({ ...half, makespan: { overLongest: 1.2, overSum: 0.8 } })).toBe(1.25);
    expect(half && workOf({ ...half, members: half.members.map(({ workload, share }) => ({ workload, share })) })).toBe(
      undefined,
    );
  });

  test('only sets with the whole device for each count as sharing', async () => {
    const { sets } = await readMeasured(folder, { licensed: false });
    const found = sharing(sets, 2);
    expect(found?.count).toBe(36);
    // A pair does the most work if both press alike: 2 / 1.8.
    expect(found?.p90).toBeLessThanOrEqual(2 / 1.8 + 1e-6);
    expect(overBestPair(sets, 3)?.median).toBeLessThan(1.2);
    expect(partnerGain(sets, 1)).toBeGreaterThan(0);
    expect(partnerGain(sets, 1)).toBe(partnerGain(sets, 1));
    expect(partnerGain(sets.slice(0, 3), 1)).toBe(undefined);
  });
});
