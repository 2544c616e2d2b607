import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { until } from '@gpuwhisk/common/testing/until';
import { hostJobs } from '../containers/sandbox/sandbox-job.js';
import type { Python } from './find-toolchains.js';
import { Compilations } from './python-compiler.js';
import { RequirementsCache, settingsOf } from './requirements-cache.js';

const KiB = 1024;

let folder: string;
let root: string;
let python: Python;
let laterMs: number;

/** An installer that makes a file of 40 KiB in a folder of the target. */
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-requirements-'));
  root = join(folder, 'requirements');
  laterMs = 0;
  const program = join(folder, 'python3');
  // Called as the compiler (-I -S -W ignore PROGRAM FOLDER MARK COMMAND...), it runs the command alone.
  const script = `#!/bin/sh
if [ "$1" = -I ]; then
  shift 7
  "$@" && echo '{"sources":0,"compiled":0,"refused":0,"failed":0,"named":[]}'
  exit
fi
[ "$3" = install ] || exit 0
echo "$*" >> ${folder}/installs
while [ "$1" != --target ]; do shift; done
mkdir "$2/package" && head -c ${40 * KiB} /dev/zero > "$2/package/data"`;
  writeFileSync(program, script);
  chmodSync(program, 0o755);
  python = {
    executable: program,
    installer: program,
    basePrefix: folder,
    version: '3.12.1',
    platform: 'linux-x86_64',
    packageFolders: [],
  };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A cache with room for two sets, but not for three; tests advance its clock. */
function cacheOf(maxBytes = 100 * KiB): RequirementsCache {
  const shifted = {
    ...systemClock,
    now: () => systemClock.now() + laterMs,
    monotonicMs: () => systemClock.monotonicMs() + laterMs,
  };
  return new RequirementsCache({
    root,
    maxBytes,
    clock: shifted,
    compilations: new Compilations(),
    dataDir: folder,
    runtimesDir: folder,
    maxSetBytes: Infinity,
    run: hostJobs(systemClock),
  });
}

const installs = (): number => readFileSync(join(folder, 'installs'), 'utf8').trim().split('\n').length;

/** Uses these sets one after another, hours apart. */
async function use(cache: RequirementsCache, ...names: string[]): Promise<string[]> {
  const folders = [];
  for (const name of names) {
    folders.push(await cache.folder(python, [name]));
    laterMs += 3_600_000;
  }
  return folders;
}

test('beyond the bound, the set unused longest goes; it is installed again when it is wanted', async () => {
  const cache = cacheOf();
  const [a = '', b = '', , c = ''] = await use(cache, 'a', 'b', 'a', 'c');
  await until(() => !existsSync(b));
  expect([existsSync(a), existsSync(c), installs()]).toEqual([true, true, 3]);
  expect(await use(cache, 'b')).toEqual([b]);
  expect([existsSync(join(b, 'package', 'data')), installs()]).toEqual([true, 4]);
  await until(() => !existsSync(a));
  expect(existsSync(c)).toBe(true);
  await until(() => readdirSync(root).length === 2);
});

test('the order of use outlives the server', async () => {
  const [a = '', b = ''] = await use(cacheOf(), 'a', 'b', 'a');
  await use(cacheOf(), 'c');
  await until(() => !existsSync(b));
  expect(existsSync(a)).toBe(true);
});

test('beyond the bound, the namespace with the most loses its own, also after a restart', async () => {
  const install = async (cache: RequirementsCache, namespace: string, name: string): Promise<string> => {
    const path = await cache.folder(python, [name], namespace);
    laterMs += 3_600_000;
    return path;
  };
  const victim = await install(cacheOf(), 'victim', 'v');
  const first = await install(cacheOf(), 'other', 'a');
  const cache = cacheOf();
  const second = await install(cache, 'other', 'b');
  await until(() => !existsSync(first));
  const third = await install(cache, 'other', 'c');
  await until(() => !existsSync(second));
  expect([existsSync(victim), existsSync(third)]).toEqual([true, true]);
  await until(() => readdirSync(join(root, '.owners')).length === 2);
});

test('a set that a process has stays, whatever the bound', async () => {
  const cache = cacheOf();
  const [a = '', b = ''] = await use(cache, 'a', 'b');
  const holder = spawn('sh', ['-c', 'echo ready; read line', 'runtime', a]);
  await new Promise((resolve) => holder.stdout.once('data', resolve));
  await use(cache, 'c');
  await until(() => !existsSync(b));
  expect(existsSync(a)).toBe(true);
  const ended = new Promise((resolve) => holder.once('exit', resolve));
  holder.stdin.end();
  await ended;
  await use(cache, 'd');
  await until(() => !existsSync(a));
});

test('sets that were just handed out stay', async () => {
  const cache = cacheOf(0);
  const folders = await Promise.all(['a', 'b', 'c'].map((name) => cache.folder(python, [name])));
  laterMs = 3_600_000;
  const last = await cache.folder(python, ['d']);
  await until(() => folders.every((each) => !existsSync(each)));
  expect(readdirSync(last)).toEqual(['package']);
  expect(installs()).toBe(4);
});

test('a set that was removed is installed again', async () => {
  const cache = cacheOf();
  const [a = ''] = await use(cache, 'a');
  rmSync(a, { recursive: true });
  const both = await Promise.all([cache.folder(python, ['a']), cache.folder(python, ['a'])]);
  expect([both, installs(), existsSync(a)]).toEqual([[a, a], 2, true]);
});

test('settings of pip are read as pip prints them', () => {
  const listed = `:env:.find-links='/opt/wheels'
global.index-url='https://user:p=s@packages.example/simple'
global.trusted-host="it's.example"
global.find-links='/a\\n/b'
install.no-binary='x'`;
  expect(settingsOf(listed, 'global')).toEqual([
    ['index-url', 'https://user:p=s@packages.example/simple'],
    ['trusted-host', "it's.example"],
    ['find-links', '/a\n/b'],
  ]);
  expect(settingsOf(listed, ':env:')).toEqual([['find-links', '/opt/wheels']]);
  expect(settingsOf(listed, 'install')).toEqual([['no-binary', 'x']]);
  expect(settingsOf('', 'global')).toEqual([]);
});
