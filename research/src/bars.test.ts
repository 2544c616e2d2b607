import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { missedBars } from '@gpuwhisk/bench/bars';
import { repositoryDir } from '@gpuwhisk/bench/machine';
import { bars } from './bars.js';
import { experiments } from './experiments.js';

test('bars are of experiments, one on each side of a metric, and cite sections that are there', async () => {
  const names = bars.map(({ bench, metric, bound }) => `${bench} ${metric} ${bound}`);
  expect(new Set(names).size).toBe(names.length);
  for (const { bench } of bars) expect(Object.keys(experiments)).toContain(bench);
  for (const source of new Set(bars.map((bar) => bar.source))) {
    const [path = '', section] = source.split('#');
    const text = await readFile(join(repositoryDir, path), 'utf8');
    if (section !== undefined) expect(text).toMatch(new RegExp(`^#+ ${section}$`, 'm'));
  }
});

test('a bar that is pending is not missed', () => {
  const pending = bars.filter(({ isPending }) => isPending);
  expect(pending.length).toBeGreaterThan(0);
  for (const bar of pending) expect(missedBars(bars, bar.bench, {})).not.toContain(bar);
});
