// Shared packages that a Node.js action loads: what is reported of them, and which a process loads ahead of code.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from '@jest/globals';
import { nodeLaunch, withNodePair } from '@gpuwhisk/invoker/runtimes/node-runtime';
import { zipOf } from './python-cases.js';
import { RuntimeProcess } from './runtime-harness.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const packages = mkdtempSync(join(tmpdir(), 'gpuwhisk-imports-'));
const shared = join(packages, 'node_modules');
afterAll(() => rmSync(packages, { recursive: true, force: true }));

const slow = 'const until = Date.now() + 10;\nwhile (Date.now() < until);\n';
const files = {
  'slow-one/index.js': slow,
  '@scope/slow-two/index.js': slow,
  '@scope/slow-two/lib/part.js': slow,
  'outer/index.js': `require('slow-one');\n${slow}`,
  'prints/index.js': `${slow}process.stdout.write('loaded');\n`,
  'breaks/index.js': `${slow}require('no-such-module');\n`,
  'wants-own/index.js': `${slow}module.parent.require('helper');\n`,
  'ticks/index.js': 'setInterval(() => {}, 1000);\n',
  'works/index.js': "new (require('worker_threads').Worker)('setTimeout(() => {}, 1e6)', { eval: true }).unref();\n",
};
for (const [file, text] of Object.entries(files)) {
  mkdirSync(dirname(join(shared, file)), { recursive: true });
  writeFileSync(join(shared, file), text);
}
for (const name of ['slow-one', '@scope/slow-two', 'outer', 'prints', 'breaks', 'wants-own', 'ticks', 'works'])
  writeFileSync(join(shared, name, 'package.json'), JSON.stringify({ name, version: '1.0.0' }));

const plain = { ...nodeLaunch(runtimesDir, process.execPath, { packages }), env: { NODE_PATH: shared } };
const { pair = plain } = withNodePair(plain);
const main = '\nexports.main = (args) => args;\n';

const one = "require('slow-one');\n";
const two = "require('@scope/slow-two');\n";
const cases: {
  name: string;
  code: string | Record<string, string>;
  env?: Record<string, string>;
  reported: string[];
}[] = [
  {
    name: 'packages of the action itself',
    code: `require('outer');\n${one}${two}`,
    reported: ['outer', '@scope/slow-two'],
  },
  {
    name: 'a file of a package',
    code: "require('@scope/slow-two/lib/part');\n",
    reported: ['@scope/slow-two/lib/part'],
  },
  { name: 'no built-in module', code: `require('crypto');\nrequire('node:zlib');\n${one}`, reported: ['slow-one'] },
  { name: 'a package after the action printed', code: `console.log('x');\n${one}`, reported: ['slow-one'] },
  { name: 'variables of the platform', code: one, env: { __OW_X: '1' }, reported: ['slow-one'] },
  { name: 'an init parameter', code: one, env: { X: '1' }, reported: [] },
  { name: 'environment', code: `process.env.X = '1';\n${one}`, reported: [] },
  { name: 'another environment', code: `process.env = { ...process.env, X: '1' };\n${one}`, reported: [] },
  { name: 'globals', code: `globalThis.own = 1;\n${one}`, reported: [] },
  {
    name: 'the way to files',
    code: `const m = require('module');\nconst r = m._resolveFilename;\nm._resolveFilename = (...a) => r(...a);\n${one}`,
    reported: [],
  },
  { name: 'the working folder', code: `process.chdir('/');\n${one}`, reported: [] },
  { name: 'a package that prints', code: `require('prints');\n${one}`, reported: ['slow-one'] },
  {
    name: 'a package that fails half-way',
    code: `try {\n  require('breaks');\n} catch {\n  ${two}}\n`,
    reported: ['@scope/slow-two'],
  },
  {
    name: "an archive's own package",
    code: { 'node_modules/slow-one/index.js': slow, 'index.js': `${one}${two}` },
    reported: ['@scope/slow-two'],
  },
  {
    name: "a package that loads an archive's own",
    code: { 'node_modules/helper/index.js': '', 'index.js': "require('wants-own');\n" },
    reported: [],
  },
  {
    name: "what an archive's own package loads",
    code: { 'node_modules/helper/index.js': one, 'index.js': "require('helper');\n" },
    reported: ['slow-one'],
  },
];

describe.each([
  ['the runtime', plain, cases],
  // It has the same code, and takes longer to start.
  ['a pair', pair, cases.slice(3, 7)],
])('%s reports', (_, launch, tried) => {
  test.each(tried)('$name', async ({ code, env = {}, reported }) => {
    const runtime = new RuntimeProcess(launch);
    try {
      const isSource = typeof code === 'string';
      const given = isSource ? `${code}${main}` : zipOf({ ...code, 'index.js': `${code['index.js']}${main}` });
      const { body, isError } = await runtime.init({ code: given, binary: !isSource, env });
      expect({ isError, body }).toMatchObject({ isError: false, body: { ok: true } });
      const { imports } = body as { imports: [string, number][] };
      expect(imports.map(([name]) => name)).toEqual(reported);
      for (const [, us] of imports) expect(us).toBeGreaterThan(9000);
      expect((await runtime.run({ a: 1 })).body).toEqual({ a: 1 });
    } finally {
      await runtime.close();
    }
  });
});

describe('learned packages', () => {
  const started = (names: string): RuntimeProcess =>
    new RuntimeProcess(pair, { GPUWHISK_IMPORTS: names, GPUWHISK_LEARNED: 'true' });

  test('are there before the code, from the shared folder, and count as no load', async () => {
    const runtime = started('slow-one @scope/slow-two/lib/part');
    try {
      const code = `const before = Object.keys(require.cache).length;\n${one}
        exports.main = () => ({ isThere: Object.keys(require.cache).length === before, seen: process.env.GPUWHISK_LEARNED ?? '' });`;
      expect((await runtime.init({ code })).body).toMatchObject({ ok: true, imports: [] });
      expect((await runtime.run({})).body).toEqual({ isThere: true, seen: '' });
      expect((await runtime.unload()).isError).toBe(true);
    } finally {
      await runtime.close();
    }
  });

  test("are not taken for an archive's own", async () => {
    const runtime = started('slow-one');
    try {
      const index = "const { own } = require('slow-one');\nexports.main = () => ({ own });\n";
      const code = zipOf({ 'node_modules/slow-one/index.js': 'exports.own = true;\n', 'index.js': index });
      expect((await runtime.init({ code, binary: true })).isError).toBe(false);
      expect((await runtime.run({})).body).toEqual({ own: true });
    } finally {
      await runtime.close();
    }
  });

  test.each([
    ['ticks', 'it left something going on: Timeout'],
    ['works', 'it started a thread'],
    ['breaks', "Cannot find module 'no-such-module'"],
    ['absent', "Cannot find module 'absent'"],
  ])('end the process if they are as %s', async (name, reason) => {
    const runtime = started(`slow-one ${name}`);
    try {
      expect(await runtime.exited).toBe(1);
      expect(runtime.stderr).toContain(`Module '${name}' cannot be loaded ahead of functions: ${reason}`);
      expect(runtime.frames).toEqual([]);
    } finally {
      await runtime.close();
    }
  });
});
