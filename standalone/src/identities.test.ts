import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { systemRandom } from '@gpuwhisk/common/system/random';
import { DataFolderError } from '@gpuwhisk/server/process/data-lock';
import { operatorKeyOf } from './identities.js';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-operator-'));
  file = join(folder, 'operator.key');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('is made once, for its owner alone to read, whatever the umask', () => {
  const umask = process.umask(0);
  const key = operatorKeyOf(folder, systemRandom);
  process.umask(umask);
  expect(key).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}:[A-Za-z0-9]{64}$/);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, 'utf8')).toBe(`${key}\n`);
  expect(operatorKeyOf(folder, systemRandom)).toBe(key);
  expect(existsSync(`${file}.new`)).toBe(false);
});

test('is another one in each folder, and after its file was deleted', () => {
  const key = operatorKeyOf(folder, systemRandom);
  rmSync(file);
  expect(operatorKeyOf(folder, systemRandom)).not.toBe(key);
});

test('is not taken from a file that others may read, nor from one without a key', () => {
  operatorKeyOf(folder, systemRandom);
  chmodSync(file, 0o640);
  expect(() => operatorKeyOf(folder, systemRandom)).toThrow(DataFolderError);
  expect(() => operatorKeyOf(folder, systemRandom)).toThrow('may be read by others (mode 0640)');
  chmodSync(file, 0o600);
  writeFileSync(file, '\n');
  expect(() => operatorKeyOf(folder, systemRandom)).toThrow('has no key (uuid:secret)');
});
