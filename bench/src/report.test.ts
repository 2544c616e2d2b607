import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { bars, missedBars, reaches } from './bars.js';
import { repositoryDir } from './machine.js';
import { flatMetrics, formatTable, resultName, rounded } from './report.js';

test('rounded keeps four digits', () => {
  expect(rounded(0.123456)).toBe(0.1235);
  expect(rounded(123456)).toBe(123456);
});

test('a run beside other platforms does not replace the result of its bench', () => {
  const peer = { name: 'other', url: 'http://h/', method: 'POST', headers: {} };
  expect(resultName({ bench: 'invoke', beside: [] })).toBe('invoke');
  expect(resultName({ bench: 'invoke', beside: [peer] })).toBe('beside');
});

test('flatMetrics refuses a name that occurs twice and a value that is no number', () => {
  const one = { name: 'a', value: 1 };
  expect(flatMetrics([one, { name: 'b', value: 0.5 }])).toEqual({ a: 1, b: 0.5 });
  expect(() => flatMetrics([one, one])).toThrow('twice');
  expect(() => flatMetrics([{ name: 'a', value: NaN }])).toThrow('NaN');
});

test('a bar binds on its own side, and its value itself reaches it', () => {
  const bar = { bench: 'x', metric: 'y', value: 2, source: '' };
  expect([1, 2, 3].map((value) => reaches({ ...bar, bound: 'at least' }, value))).toEqual([false, true, true]);
  expect([1, 2, 3].map((value) => reaches({ ...bar, bound: 'at most' }, value))).toEqual([true, true, false]);
});

test('a figure that is absent misses its bar', () => {
  const metrics = { 'coldMs.nodejs': 131, 'coldMs.python': 25, 'stemMs.nodejs': 1 };
  expect(missedBars(bars, 'cold', metrics).map(({ metric }) => metric)).toEqual(['coldMs.nodejs', 'stemMs.python']);
});

test('a bar that is pending is not missed', () => {
  const bar = { bench: 'x', metric: 'y', bound: 'at least', value: 2, source: '' } as const;
  expect(missedBars([bar, { ...bar, metric: 'z', isPending: true }], 'x', {})).toEqual([bar]);
});

test('no bar cites anything but a document that is there', async () => {
  for (const source of new Set(bars.map((bar) => bar.source))) {
    const [path = '', section] = source.split('#');
    const text = await readFile(join(repositoryDir, path), 'utf8');
    if (section !== undefined) expect(text).toMatch(new RegExp(`^#+ ${section}$`, 'm'));
  }
});

test('no metric has two bars on one side', () => {
  const names = bars.map(({ bench, metric, bound }) => `${bench} ${metric} ${bound}`);
  expect(new Set(names).size).toBe(names.length);
});

test('the table shows spread, bar and verdict', () => {
  const table = formatTable(bars, 'invoke', [
    { name: 'ratio64', value: 0.1, spread: [0.08, 0.12] },
    { name: 'errors64', value: 0 },
  ]);
  expect(table).toContain('ratio64   0.1    0.08 to 0.12  at least 0.3  MISSED');
  expect(table).toMatch(/errors64 +0 +at most 0 +reached/);
});
