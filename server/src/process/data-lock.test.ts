import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { DataFolderError, lockDataFolder } from './data-lock.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-lock-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('a second lock is refused while the first is held, and granted after it is given back', () => {
  const release = lockDataFolder(join(folder, 'data'));
  expect(() => lockDataFolder(join(folder, 'data'))).toThrow(DataFolderError);
  release();
  lockDataFolder(join(folder, 'data'))();
});

test('the lock of a dead process is taken over', () => {
  writeFileSync(join(folder, 'server.lock'), JSON.stringify({ pid: 999_999_999 }));
  lockDataFolder(folder);
  expect(JSON.parse(readFileSync(join(folder, 'server.lock'), 'utf8'))).toMatchObject({ pid: process.pid });
});

test('a lock whose pid now belongs to another process is taken over', () => {
  writeFileSync(join(folder, 'server.lock'), JSON.stringify({ pid: process.ppid, started: 'another boot 1' }));
  expect(() => lockDataFolder(folder)).not.toThrow();
});

test('a folder with content that other users can read is refused, and an empty one is closed to them', () => {
  chmodSync(folder, 0o755);
  lockDataFolder(folder)();
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  lockDataFolder(join(folder, 'data'))();
  expect(statSync(join(folder, 'data')).mode & 0o777).toBe(0o700);
  for (const mode of [0o755, 0o710, 0o701]) {
    chmodSync(folder, mode);
    const told = `${folder} is open to other users (mode 0${mode.toString(8)}, expected 0700); run 'chmod 700 ${folder}'`;
    expect(() => lockDataFolder(folder)).toThrow(told);
    expect(statSync(folder).mode & 0o777).toBe(mode);
  }
  chmodSync(folder, 0o700);
  lockDataFolder(folder)();
});

test('a folder that cannot be made is refused with its name and the reason', () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  expect(() => lockDataFolder(file)).toThrow(DataFolderError);
  expect(() => lockDataFolder(join(file, 'data'))).toThrow(
    `The data folder ${join(file, 'data')} cannot be used (ENOTDIR`,
  );
});
