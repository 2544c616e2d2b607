// What is remembered of the modules that actions import: for which namespace, within which bounds, over a restart.
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createLogger } from '@gpuwhisk/common/logging';
import type { RunnableAction } from '@gpuwhisk/invoker/activation/action-loader';
import { learnedFile } from '@gpuwhisk/invoker/runtimes/learned-file';
import { LearnedImports } from '@gpuwhisk/invoker/activation/learned-imports';
import { nodeModulesIn } from '@gpuwhisk/invoker/runtimes/node-modules';
import { bareSpec, matchSpecs } from '@gpuwhisk/invoker/containers/container-factory';
import type { Container } from '@gpuwhisk/invoker/containers/container-factory';
import { containerLike } from '../simulation/delegates.js';
import { SimulatedClock } from '../simulation/simulated-clock.js';

const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-learned-'));
const shared = join(folder, 'shared');
const logger = createLogger({ level: 'silent' });
const clock = new SimulatedClock();
const kind = 'python:3.11';
const container = containerLike({} as Container, {
  sharedModules: { language: 'python', folders: [join(folder, 'none'), shared] },
});
const path = join(folder, 'learned.json');

beforeAll(() => {
  mkdirSync(join(shared, 'package'), { recursive: true });
  for (const name of ['one.py', 'two.cpython-311-x86_64-linux-gnu.so', 'package/__init__.py', 'package/part.py'])
    writeFileSync(join(shared, name), '');
  for (let at = 0; at < 400; at++) writeFileSync(join(shared, `m${at}.py`), '');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const open = (): Promise<LearnedImports> => LearnedImports.open({ file: learnedFile(path, logger), clock, logger });

function action(name: string, more: Partial<RunnableAction> = {}): RunnableAction {
  return {
    ...{ namespace: 'guest', name, version: '0.0.1', revision: '1-a', kind, runtime: kind, main: 'main' },
    ...{ annotations: [], requirements: [], warm: { imports: [], cuda: false } },
    limits: { timeout: 1000, memory: 256, logs: 1, concurrency: 1 },
    code: () => Promise.reject(new Error('not needed')),
    isCurrent: () => Promise.resolve(true),
    ...more,
  };
}

const modules = (...names: string[]) => names.map((name) => ({ name, ms: 100 }));

test('names count that lie in shared folders, for actions of the namespace, kind and requirements', async () => {
  const learned = await open();
  const names = ['one', 'two', 'package', 'package.part', 'absent', 'package.absent', 'shared', 'none.one'];
  await learned.learn('guest', action('a'), container, modules(...names), []);
  const imports = ['one', 'two', 'package', 'package.part'];
  expect(learned.wanted('guest', action('a'))).toEqual({
    imports,
    learned: { namespace: 'guest', takesMore: false, savesMs: 400 },
  });
  const leadingImports = ['two', 'one', 'absent'];
  const other = { imports: ['one', 'two'], learned: { namespace: 'guest', takesMore: true, savesMs: 200 } };
  expect(learned.wanted('guest', action('b', { leadingImports }))).toEqual(other);
  for (const more of [
    {},
    { leadingImports: [] },
    { requirements: ['numpy'], leadingImports },
    { runtime: 'python:3.12' },
  ])
    expect(learned.wanted('guest', action('c', more))).toBeUndefined();
  expect(learned.wanted('other', action('a', { leadingImports }))).toBeUndefined();
  expect(learned.wanted('guest', action('a', { revision: '2-b' }))).toBeUndefined();
});

test('requirements of one name and two versions are sets of their own, which share no process', async () => {
  const learned = await open();
  const [old, recent] = [{ requirements: ['sample==1.0'] }, { requirements: ['sample==2.0'] }];
  await learned.learn('guest', action('a', old), container, modules('one'), []);
  const leadingImports = ['one', 'two'];
  expect(learned.wanted('guest', action('b', { ...recent, leadingImports }))).toBeUndefined();
  await learned.learn('guest', action('b', recent), container, [{ name: 'one', ms: 900 }, ...modules('two')], []);
  const wishes = [old, recent].map((more) => learned.wanted('guest', action('c', { ...more, leadingImports })));
  expect(wishes.map((wish) => [wish?.imports, wish?.learned.savesMs])).toEqual([
    [['one'], 100],
    [['one', 'two'], 1000],
  ]);
  const [first, second] = wishes.map((wish, at) => ({ ...bareSpec(kind, 256), ...[old, recent][at], ...wish }));
  expect([matchSpecs(first!, second!), matchSpecs(second!, first!)]).toEqual(['none', 'none']);
});

test('names of Node.js count that lie in the folder of packages', async () => {
  const packages = join(folder, 'node_modules');
  const there = ['one', 'two/lib/part', 'two/data.json', '@scope/three', 'exports/named'];
  const absent = [
    ...['absent', 'two/absent', 'exports/lib/hidden', 'shared', 'fs', 'node:fs', 'broken/x', '@scope', 'one/'],
    ...['../shared/one', 'one/../two', './one', '/one', 'two//data.json', 'plain'],
  ];
  for (const [file, text] of Object.entries({
    'one/package.json': '{}',
    'two/package.json': '{}',
    'two/lib/part.js': '',
    'two/data.json': '{}',
    '@scope/three/package.json': '{}',
    'exports/package.json': '{"exports":{".":"./lib/hidden.js","./named":"./lib/hidden.js"}}',
    'exports/lib/hidden.js': '',
    'broken/package.json': '{',
    'broken/x.js': '',
    'plain/x.js': '',
  })) {
    mkdirSync(dirname(join(packages, file)), { recursive: true });
    writeFileSync(join(packages, file), text);
  }
  const found = await nodeModulesIn([packages], [...absent, ...there]);
  expect([...found].sort()).toEqual(there.sort());

  const learned = await open();
  const nodeJs = containerLike(container, { sharedModules: { language: 'nodejs', folders: [packages] } });
  await learned.learn('guest', action('a', { runtime: 'nodejs:20' }), nodeJs, modules(...there, ...absent), []);
  await learned.close();
  const again = await open();
  expect(again.wanted('guest', action('a', { runtime: 'nodejs:20' }))?.imports.toSorted()).toEqual(there.sort());
  await again.learn('guest', action('b'), container, modules('two/lib/part', '@scope/three'), []);
  expect(again.wanted('guest', action('b'))).toBeUndefined();
});

test('what is declared stands before, and an action may opt out', async () => {
  const learned = await open();
  const declares = { warm: { imports: ['x'], cuda: false } };
  const optsOut = { warm: { imports: [], cuda: false, learns: false as const } };
  for (const more of [declares, optsOut])
    await learned.learn('guest', action('a', more), container, modules('one'), []);
  expect(learned.wanted('guest', action('a'))).toBeUndefined();
  await learned.learn('guest', action('a'), container, modules('one'), []);
  for (const more of [declares, optsOut]) expect(learned.wanted('guest', action('a', more))).toBeUndefined();
  expect(learned.wanted('guest', action('a'))).toBeDefined();
});

test('imports of a moment are not worth a process', async () => {
  const learned = await open();
  await learned.learn('guest', action('a'), container, [{ name: 'one', ms: 5 }], []);
  expect(learned.wanted('guest', action('a'))).toBeUndefined();
});

test('modules that were there already stay known, beside those that were not', async () => {
  const learned = await open();
  await learned.learn('guest', action('a'), container, modules('one'), []);
  await learned.learn('guest', action('a'), container, modules('two'), ['one']);
  expect(learned.wanted('guest', action('a'))?.imports).toEqual(['one', 'two']);
});

test('a set that cannot be loaded ahead three times is off for an hour', async () => {
  const learned = await open();
  await learned.learn('guest', action('a'), container, modules('one'), []);
  const spec = { ...bareSpec(kind, 256), ...learned.wanted('guest', action('a')) };
  for (let failure = 0; failure < 3; failure++) {
    expect(learned.wanted('guest', action('a'))).toBeDefined();
    learned.failedFor(spec, new Error('it started a thread'));
  }
  const { changes } = learned;
  expect(learned.wanted('guest', action('a'))).toBeUndefined();
  await clock.runFor(3_600_001);
  expect(learned.changes).toBeGreaterThan(changes);
  expect(learned.wanted('guest', action('a'))).toBeDefined();
});

test('10,000 actions of 200 namespaces stay within the bounds, also on disk, and a restart knows the last ones', async () => {
  const learned = await open();
  for (let at = 0; at < 10_000; at++) {
    const names = Array.from({ length: 8 }, (_, index) => `m${(at * 7 + index) % 400}`);
    await learned.learn(`n${at % 200}`, action(`a${at}`), container, modules(...names), []);
  }
  const last = learned.wanted('n199', action('a9999'));
  expect(last?.imports.length).toBeGreaterThan(0);
  expect(learned.wanted('n0', action('a9800'))).toBeUndefined();
  await learned.close();
  expect(statSync(path).size).toBeLessThan(4 * 1024 * 1024);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const again = await open();
  expect(again.wanted('n199', action('a9999'))).toEqual(last);
});

test.each([
  '',
  '[]',
  '{"version":9}',
  '{"version":1,"namespaces":[{"namespace":"guest","sets":[{"key":"k","modules":[["a b",1]],"actions":[]}]}]}',
])('a file with %j is as none', async (text) => {
  writeFileSync(path, text);
  const learned = await open();
  expect(learned.wanted('guest', action('a', { leadingImports: ['one'] }))).toBeUndefined();
});
