import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { checkDataFormat, openDataFormat, restoreBackup } from './data-format.js';
import { DataFolderError } from './data-lock.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-format-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const at = (...path: string[]): string => join(folder, ...path);
const textOf = (...path: string[]): string => readFileSync(at(...path), 'utf8');
const toldFormat = (): unknown => JSON.parse(textOf('format.json'));
const first = { format: 1, migrations: {} };
/** A later release, whose change of the format appends a word to the stored text, and then does `more`. */
const later = (more: () => void = () => undefined) => ({
  format: 2,
  migrations: {
    1: async (data: string): Promise<void> => {
      writeFileSync(join(data, 'store', 'data'), `${textOf('store', 'data')} changed`);
      more();
      await Promise.resolve();
    },
  },
});

/** A folder as a release of the first format leaves it. */
async function fill(): Promise<void> {
  await openDataFormat(folder, first);
  mkdirSync(at('store'));
  writeFileSync(at('store', 'data'), 'written', { mode: 0o600 });
  mkdirSync(at('runtimes'));
  writeFileSync(at('runtimes', 'cache'), 'fetched');
}

test('a new folder has the format of the release that makes it', async () => {
  await openDataFormat(folder, later());
  expect(toldFormat()).toMatchObject({ format: 2 });
  expect(readdirSync(folder)).toEqual(['format.json']);
});

test('a folder without a format is of the first one', async () => {
  await fill();
  rmSync(at('format.json'));
  await openDataFormat(folder, later());
  expect(textOf('store', 'data')).toBe('written changed');
  expect(textOf('backups', 'format-1', 'store', 'data')).toBe('written');
});

test('an upgrade keeps the data of the format before; the older release refuses the new one, names the copy, and puts it back', async () => {
  await fill();
  await openDataFormat(folder, later());
  expect([textOf('store', 'data'), toldFormat()]).toEqual(['written changed', expect.objectContaining({ format: 2 })]);
  expect(readdirSync(at('backups', 'format-1')).sort()).toEqual(['format.json', 'store']);
  const told = `has format 2, of gpuwhisk`;
  expect(() => checkDataFormat(folder, first)).toThrow(told);
  await expect(openDataFormat(folder, first)).rejects.toThrow(`its backup is ${at('backups', 'format-1')}`);
  await expect(openDataFormat(folder, first)).rejects.toThrow(DataFolderError);
  expect(textOf('store', 'data')).toBe('written changed');

  expect(restoreBackup(folder, first)).toContain(at('backups', 'format-2'));
  await openDataFormat(folder, first);
  expect([textOf('store', 'data'), textOf('backups', 'format-2', 'store', 'data')]).toEqual([
    'written',
    'written changed',
  ]);
  expect(existsSync(at('runtimes', 'cache'))).toBe(true);
  // Forward again: the present data counts, not the first copy.
  writeFileSync(at('store', 'data'), 'written again');
  await openDataFormat(folder, later());
  expect([textOf('store', 'data'), textOf('backups', 'format-1', 'store', 'data')]).toEqual([
    'written again changed',
    'written again',
  ]);
});

test('a change that is interrupted begins again with the data of before', async () => {
  await fill();
  const interrupted = later(() => {
    throw new Error('killed');
  });
  await expect(openDataFormat(folder, interrupted)).rejects.toThrow('killed');
  expect(textOf('store', 'data')).toBe('written changed');
  await openDataFormat(folder, later());
  expect(textOf('store', 'data')).toBe('written changed');
});

test('the older release opens what an interrupted change has left', async () => {
  await fill();
  await expect(
    openDataFormat(
      folder,
      later(() => {
        throw new Error('killed');
      }),
    ),
  ).rejects.toThrow('killed');
  await openDataFormat(folder, first);
  expect([textOf('store', 'data'), toldFormat()]).toEqual(['written', { format: 1, release: expect.any(String) }]);
});

test('without a backup the refusal says so, and nothing is restored', async () => {
  await openDataFormat(folder, later());
  mkdirSync(at('store'));
  expect(() => checkDataFormat(folder, first)).toThrow('There is no backup from before that change');
  expect(() => restoreBackup(folder, first)).toThrow('There is no backup of a format up to 1');
  expect(() => restoreBackup(folder, later())).toThrow('nothing is restored');
});

test.each(['', '{"format":', '{"format":"one","release":"0"}', 'null'])(
  'a damaged file (%j) is refused',
  async (text) => {
    await fill();
    writeFileSync(at('format.json'), text);
    await expect(openDataFormat(folder, first)).rejects.toThrow(`${at('format.json')} is damaged`);
    expect(textOf('format.json')).toBe(text);
  },
);
