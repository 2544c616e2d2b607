import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { repositoryDir } from '../machine.js';
import type { Result } from '../report.js';
import { besideTable } from './beside-tables.js';
import { neighboursTable } from './neighbours-table.js';
import { documentPaths, formatted, readResults, withFigures, type Results } from './figures.js';

const result: Result = {
  bench: 'live',
  commit: '0123456789-dirty',
  date: '2026-11-22',
  machine: { model: 'A', cores: 2, memoryMiB: 1, kernel: '6', node: 'v20.1.0' },
  simulated: true,
  command: 'npm run bench -- live',
  seed: 1,
  metrics: { ratio: 1.0089, 'part.ms': 109_800 },
};
const results: Results = {
  runs: new Map([['live', result]]),
  gpuDays: [],
};

test('the documents hold the figures of bench/results (npm run bench -- figures writes them)', async () => {
  const measured = await readResults();
  for (const path of await documentPaths()) {
    const document = await readFile(join(repositoryDir, path), 'utf8');
    expect(`${path}\n${document}`).toBe(`${path}\n${withFigures(document, measured)}`);
  }
});

test('formats', () => {
  expect([10_060, 0.2244, 6731.2].map((value) => formatted(value))).toEqual(['10,060', '0.2244', '6,731']);
  expect([formatted(1.0089, '.2'), formatted(-0.0001, '%1'), formatted(0.1741, '%1')]).toEqual([
    '1.01',
    '0.0 %',
    '17.4 %',
  ]);
  expect(formatted(109_800, 's1')).toBe('109.8');
  expect(() => formatted(1, 'x')).toThrow("no format 'x'");
});

test('figures stand between their marks', () => {
  const text = 'It is <!--= live.ratio .2 -->9<!--/--> in <!--= live.part.ms s0 --><!--/--> s.';
  const once = withFigures(text, results);
  expect(once).toBe('It is <!--= live.ratio .2 -->1.01<!--/--> in <!--= live.part.ms s0 -->110<!--/--> s.');
  expect(withFigures(once, results)).toBe(once);
  const several = { runs: new Map([['live', { ...result, metrics: { 'a.1': 2, 'a.20': 3, ab: 4 } }]]) };
  expect(withFigures('<!--= live.a.* -->9<!--/-->', { ...results, ...several })).toBe('<!--= live.a.* -->3<!--/-->');
  expect(() => withFigures('<!--= live.b.* --><!--/-->', results)).toThrow("live.json has no metric 'b.*'");
  expect(() => withFigures('<!--= live.none --><!--/-->', results)).toThrow("live.json has no metric 'none'");
});

test('the comparison has a row for each platform, and says where processor time was not measured', () => {
  const metrics = {
    addedP50Ms: 0.2,
    ratio64: 0.25,
    'serverCpuSPer1000.c64': 0.11,
    'sandboxCpuSPer1000.c64': 0.1,
    addedP50PythonMs: 0.3,
    ratio64Python: 0.2,
    'serverCpuSPer1000.c64Python': 0.12,
    'sandboxCpuSPer1000.c64Python': 0.2,
    'addedP50Ms.other': 0.4,
    'ratio64.other': 0.1,
    'serverCpuSPer1000.other.c64': 0.5,
  };
  const rows = besideTable(metrics).split('\n').slice(2);
  expect(rows).toEqual([
    '| gpuwhisk, Node.js | 0.200 | 0.250 | 0.110 | 0.100 |',
    '| gpuwhisk, Python | 0.300 | 0.200 | 0.120 | 0.200 |',
    '| other | 0.400 | 0.100 | 0.500 | not measured |',
  ]);
  expect(() => besideTable({ ratio64: 0.25 })).toThrow("beside.json has no metric 'addedP50Ms'");
});

test('latencies beside hostile namespaces have a row for each load, and say where they miss their bar', async () => {
  const { runs } = await readResults();
  const metrics = {
    ...runs.get('neighbours')?.metrics,
    'neighbourP99Over.lists.1': 1.4,
    'neighbourP99Over.lists.20': 1.6,
  };
  const [row] = neighboursTable({ ...metrics, 'longestPauseMs.lists.1': 2, 'longestPauseMs.lists.20': 12 })
    .split('\n')
    .filter((line) => line.includes('`lists`'));
  expect(row).toBe('| `lists` | 1.40 | 1.60, missed | 12.0 |');
  expect(() => neighboursTable({})).toThrow("neighbours.json has no metric 'neighbourP99Over.streams.1'");
});

test('blocks hold conditions and tables', () => {
  const block = (name: string): string =>
    `before\n\n<!-- figures ${name}: written by npm run bench -- figures -->\nold\n<!-- end of figures -->\nafter`;
  const runs = withFigures(block('runs live'), results);
  expect(runs).toContain(
    '| `live` | 2026-11-22 | `0123456` with changes | 2 cores, A, Node.js 20.1.0; simulated GPUs | `npm run bench -- live` |',
  );
  expect(withFigures(runs, results)).toBe(runs);
  const blocks = { table: (_: Results, names: readonly string[]): string => `| ${names.join(' | ')} |` };
  const other = block('table a b').replace('run bench', 'run research');
  expect(withFigures(other, results)).toBe(other);
  expect(withFigures(other, results, { program: 'research', blocks })).toContain('-->\n\n| a | b |\n\n<!-- end');
  expect(() => withFigures(block('none'), results)).toThrow("no block of figures 'none'");
  expect(() => withFigures(block('runs none'), results)).toThrow("no result of 'none'");
});
