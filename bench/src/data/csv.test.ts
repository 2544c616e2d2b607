import { expect, test } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BenchDataError, benchDataDir, parseTable, readTable } from './csv.js';

const columns = { model: 'text', batch: 'number', util: 'optionalNumber' } as const;

test('the wanted columns are read with their types, others are left out', () => {
  const rows = parseTable('batch,model,note,util\n1,alexnet,x,0.5\r\n32,"a, ""b""",,\n', columns, 'f.csv');
  expect(rows).toEqual([
    { model: 'alexnet', batch: 1, util: 0.5 },
    { model: 'a, "b"', batch: 32, util: undefined },
  ]);
});

test('a quoted field may stand first, and a blank one last', () => {
  expect(parseTable('model,batch,util\n"a,b",2,\n', columns, 'f.csv')).toEqual([
    { model: 'a,b', batch: 2, util: undefined },
  ]);
});

test.each([
  ['batch,util\n1,2\n', "'f.csv' has no column 'model': it has batch, util."],
  ['model,batch,util\na,1\n', "'f.csv', line 2: 2 fields instead of 3."],
  ['model,batch,util\na,1,1\nb,many,1\n', "'f.csv', line 3, column 'batch': 'many' is no number."],
  ['model,batch,util\na,NaN,1\n', "'f.csv', line 2, column 'batch': 'NaN' is no number."],
  ['model,batch,util\na,,1\n', "'f.csv', line 2, column 'batch': a blank instead of a number."],
  ['model,batch,util\n"a,1,1\n', "'f.csv', line 2: a quote that is not closed or out of place."],
])('%j is refused', (text, message) => {
  expect(() => parseTable(text, columns, 'f.csv')).toThrow(new BenchDataError(message));
});

test('BENCH_DATA names the folder, and is named where it is missing or lacks a file', async () => {
  expect(() => benchDataDir({})).toThrow(/set BENCH_DATA to the folder/);
  const folder = await mkdtemp(join(tmpdir(), 'bench-data-'));
  try {
    expect(benchDataDir({ BENCH_DATA: folder })).toBe(folder);
    await writeFile(join(folder, 'one.csv'), 'batch\n4\n');
    expect(await readTable('one.csv', { batch: 'number' }, folder)).toEqual([{ batch: 4 }]);
    await expect(readTable('two.csv', { batch: 'number' }, folder)).rejects.toThrow(
      `Cannot read 'two.csv' in BENCH_DATA (${folder}): there is no such file.`,
    );
  } finally {
    await rm(folder, { recursive: true });
  }
});
