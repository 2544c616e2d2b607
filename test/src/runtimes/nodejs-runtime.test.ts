import { execFileSync } from 'node:child_process';
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import AdmZip from 'adm-zip';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { checkCase, InjectedCases } from './runtime-cases.js';
import type { RuntimeCase } from './runtime-cases.js';
import { RuntimeProcess } from './runtime-harness.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const dataDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-catalog-'));
let launch: RuntimeLaunch;

beforeAll(async () => {
  const catalog = await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock, env: {} });
  const own = `nodejs:${process.versions.node.split('.')[0]}`;
  launch = await catalog.launch(own, []);
});
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

function zip(files: Record<string, string>): string {
  const archive = new AdmZip();
  for (const [name, text] of Object.entries(files)) archive.addFile(name, Buffer.from(text));
  return archive.toBuffer().toString('base64');
}

const noDictionary = 'The action did not return a dictionary.';
const inline: RuntimeCase[] = [
  { name: 'main in scope', code: 'function main(args) { return args }', value: { a: [1] }, result: { a: [1] } },
  { name: 'an array as argument', code: 'const main = (args) => args', value: [1, 'x'], result: [1, 'x'] },
  { name: 'another name', code: 'function niam() { return {a: 1} }', main: 'niam', result: { a: 1 } },
  { name: 'a path of names', code: 'const a = { b: () => ({c: 1}) }', main: 'a.b', result: { c: 1 } },
  { name: 'exports.main', code: 'exports.main = () => ({a: 1})', result: { a: 1 } },
  { name: 'module.exports.main', code: 'module.exports = { main: () => ({a: 1}) } // end', result: { a: 1 } },
  { name: 'a path in exports', code: 'exports.a = { b: () => ({c: 1}) }', main: 'a.b', result: { c: 1 } },
  { name: 'global main', code: 'global.main = () => ({a: 1})', result: { a: 1 } },
  { name: 'sloppy globals', code: 'function main() { x = 1; return {x} }', result: { x: 1 } },
  {
    name: "the collector, as OpenWhisk's --expose-gc gives it",
    code: `let seen = new WeakRef({});
      async function main() {
        await new Promise((done) => setTimeout(done, 1));
        global.gc();
        const later = await gc({ execution: 'async' });
        return { type: typeof gc, gone: seen.deref() === undefined, later: later === undefined, execArgv: process.execArgv };
      }`,
    result: { type: 'function', gone: true, later: true, execArgv: ['--expose-gc'] },
  },
  {
    name: 'the collector in what it forks',
    code: `const { fork } = require('child_process');
      const fs = require('fs');
      function main() {
        fs.writeFileSync('child.js', 'process.send(typeof gc); process.disconnect()');
        return new Promise((done) => fork('./child.js').on('message', (type) => done({ type })));
      }`,
    result: { type: 'function' },
  },
  {
    name: 'require',
    code: "const os = require('os'); function main() { return {a: typeof os.cpus} }",
    result: { a: 'function' },
  },
  {
    name: 'dynamic import',
    code: "async function main() { return {a: (await import('os')).EOL} }",
    result: { a: '\n' },
  },
  { name: 'an ES module', code: "import os from 'os'; export const main = () => ({a: os.EOL})", result: { a: '\n' } },
  { name: 'a default export', code: 'export default function () { return {a: 1} }', result: { a: 1 } },
  { name: 'top-level await', code: 'await null; export function main() { return {a: 1} }', result: { a: 1 } },
  { name: 'no result', code: 'function main() {}', result: {} },
  {
    name: 'a function that readies it',
    code: 'let model; async function load() { model = 1 } function main() { return {model} }',
    entry: 'load',
    result: { model: 1 },
  },
  {
    name: 'an ES module with a function that readies it',
    code: 'let model; export const load = () => { model = 1 }; export const main = () => ({model})',
    entry: 'load',
    result: { model: 1 },
  },
  {
    name: 'a function that readies it and fails',
    code: "const load = () => { throw new Error('no model') }; const main = () => ({})",
    entry: 'load',
    initError: /^Initialization has failed due to: Error: no model/,
  },
  {
    name: 'one that is not there',
    code: 'const main = () => ({})',
    entry: 'load',
    initError: /Action entrypoint 'load' is not a function/,
  },
  { name: 'async function', code: 'async function main() { return {a: 1} }', result: { a: 1 } },
  { name: 'late promise', code: 'const main = () => new Promise(r => setTimeout(r, 20, {a: 1}))', result: { a: 1 } },
  { name: 'own error', code: "function main() { return {error: 'sorry'} }", result: { error: 'sorry' } },
  {
    name: 'rejection with an object',
    code: 'const main = () => Promise.reject({done: true})',
    result: { error: { done: true } },
  },
  { name: 'rejection with nothing', code: 'const main = () => Promise.reject()', result: { error: {} } },
  { name: 'rejection with a text', code: "const main = () => Promise.reject('no')", result: { error: 'no' } },
  {
    name: 'rejection with an error',
    code: "async function main() { throw Object.assign(new TypeError('no'), {code: 'E', self: null}) }",
    result: {
      error: {
        name: 'TypeError',
        message: 'no',
        code: 'E',
        self: null,
        stack: expect.stringMatching(/^TypeError: no\n {4}at main \((?![^]*\/runtimes\/)/),
      },
    },
  },
  {
    name: 'rejection with a cycle',
    code: "async function main() { const e = new Error('no'); e.self = e; throw e }",
    result: { error: expect.objectContaining({ self: '[Circular]' }) },
  },
  { name: 'throw', code: "function main() { throw 'nooo' }", runError: 'An error has occurred: nooo', stderr: /nooo/ },
  {
    name: 'throw an error',
    code: "function main() { throw new Error('x') }",
    runError: 'An error has occurred: Error: x',
  },
  {
    name: 'throw without a text',
    code: 'function main() { throw Object.create(null) }',
    runError: /^An error has occurred: \[object/,
  },
  { name: 'a string', code: "function main() { return 'no' }", runError: noDictionary, stderr: /has type "string"/ },
  { name: 'a number', code: 'async function main() { return 1 }', runError: noDictionary },
  {
    name: 'null',
    code: 'function main() { return null }',
    runError: 'The action did not produce a valid JSON or JSON Array response: null',
  },
  {
    name: 'a date',
    code: 'function main() { return new Date(0) }',
    runError: /valid JSON or JSON Array response: "1970/,
  },
  { name: 'a list', code: 'function main() { return [1, {a: 2}] }', result: [1, { a: 2 }] },
  {
    name: 'a cycle',
    code: 'function main() { const a = {}; a.a = a; return a }',
    runError: /^An error has occurred: TypeError: Converting circular/,
  },
  { name: 'a big integer', code: 'function main() { return {a: 1n} }', runError: /BigInt/ },
  { name: 'exit', code: 'function main() { process.exit(3) }', exit: 3 },
  { name: 'exit while loading', code: 'process.exit(4)', exit: 4 },
  {
    name: 'stray error',
    code: "function main() { setTimeout(() => { throw new Error('stray') }); return new Promise(() => {}) }",
    exit: 1,
    stderr: /stray/,
  },
  {
    name: 'stray rejection',
    code: "function main() { Promise.reject(new Error('stray')); return new Promise(() => {}) }",
    exit: 1,
    stderr: /stray/,
  },
  {
    name: 'bad syntax',
    code: ' 10 PRINT "x"',
    initError: /^Initialization has failed due to: [^]*SyntaxError/,
    stderr: /Error during initialization:[^]*SyntaxError/,
  },
  {
    name: 'an error with a field',
    code: "function main() { throw Object.assign(new Error('no'), {code: 'E'}) }",
    runError: 'An error has occurred: Error: no',
    stderr: /^Error: no\n {4}at main \(.*\) \{\n {2}code: 'E'\n\}\n$/,
  },
  {
    name: 'a source that ends too early',
    code: 'function main( {',
    initError: /index\.js:1\nfunction main\( \{\n\s*SyntaxError: Unexpected end of input/,
  },
  { name: 'bad syntax in an ES module', code: 'export function main( {', initError: /SyntaxError/ },
  {
    name: 'error while loading',
    code: 'missing.call()',
    initError: /^Initialization has failed due to: ReferenceError: missing is not defined\n(?![^]*\/runtimes\/)/,
    stderr: /^Error during initialization: ReferenceError: missing is not defined\n(?![^]*\/runtimes\/)/,
  },
  {
    name: 'a missing package',
    code: "require('none')",
    initError: /Cannot find module 'none'/,
    stderr: /\nName 'none' in the dependencies of a package\.json, run npm install, and create .*\.\n$/,
  },
  {
    name: 'a missing file',
    code: "require('./none')",
    initError: /Cannot find module '.\/none'/,
    stderr: /(?<!folder\.)\n$/,
  },
  {
    name: 'no main',
    code: 'const x = 1',
    initError: "Initialization has failed due to: Action entrypoint 'main' is not a function.",
  },
  {
    name: 'main is no function',
    code: 'const main = 1',
    initError: "Initialization has failed due to: Action entrypoint 'main' is not a function.",
  },
  {
    name: 'main is no name',
    code: 'function main() {}',
    main: 'a;b',
    initError: 'Initialization has failed due to: Name of main function is not valid.',
  },
  { name: 'no code', code: '', initError: 'Missing main/no code to execute.' },
  {
    name: 'environment of init',
    code: 'const e = process.env.E; function main() { return {e} }',
    env: { E: 'x' },
    result: { e: 'x' },
  },
  {
    name: 'printing',
    code: "function main() { console.log('out ☃'); console.error('err'); return {} }",
    result: {},
    stdout: 'out ☃\n',
    stderr: 'err\n',
  },
];

const archives: (RuntimeCase & { files: Record<string, string> })[] = [
  { name: 'index.js', code: '', files: { 'index.js': 'exports.main = (a) => a' }, value: { a: 1 }, result: { a: 1 } },
  {
    name: 'package.json with main, node_modules and files',
    code: '',
    files: {
      'package.json': '{"main": "lib/start.js"}',
      'lib/start.js':
        "const fs = require('fs'); exports.main = () => ({ dep: require('dep'), file: fs.readFileSync('data.txt', 'utf8') })",
      'node_modules/dep/index.js': 'module.exports = 42',
      'data.txt': 'text',
    },
    result: { dep: 42, file: 'text' },
  },
  {
    name: 'another file',
    code: '',
    main: 'other.a.b',
    files: { 'other.js': 'exports.a = { b: () => ({c: 1}) }' },
    result: { c: 1 },
  },
  {
    name: 'an ES module',
    code: '',
    files: {
      'package.json': '{"type":"module"}',
      'index.js': 'export const main = () => ({a: import.meta.url.length > 0})',
    },
    result: { a: true },
  },
  { name: 'index.mjs', code: '', files: { 'index.mjs': 'export default { main: () => ({a: 1}) }' }, result: { a: 1 } },
  {
    name: 'no entry',
    code: '',
    files: { hello: 'x' },
    initError: /Zipped actions must contain either package.json or index.js at the root.$/,
  },
  {
    name: 'no function',
    code: '',
    files: { 'index.js': '' },
    initError: /Action entrypoint 'main' is not a function.$/,
  },
  {
    name: 'an error',
    code: '',
    files: { 'index.js': 'throw new Error("boom")' },
    initError: /^Initialization has failed due to: Error: boom/,
  },
];

describe('the Node.js runtime', () => {
  test.each(inline)('source: $name', (given) => checkCase(launch, given));
  test.each(archives)('zip: $name', ({ files, ...given }) =>
    checkCase(launch, { ...given, code: zip(files), binary: true }),
  );

  describe('as a pre-warmer', () => {
    const injected = new InjectedCases(() => launch);
    afterAll(() => injected.close());
    test.each(inline)('source: $name', (given) => injected.check(given));
    test.each(archives)('zip: $name', ({ files, ...given }) =>
      injected.check({ ...given, code: zip(files), binary: true }),
    );
  });

  test.each([
    [
      'no archive',
      'Q2VjaSBuJ2VzdCBwYXMgdW4gemlwLgo=',
      /uncompressing the action archive. The file type is unsupported$/,
    ],
    ['a torn zip', Buffer.from('PK\x03\x04torn').toString('base64'), /uncompressing the action Zip archive.$/],
    [
      'a torn tar.gz',
      Buffer.from([0x1f, 0x8b, 8, 0, 1]).toString('base64'),
      /uncompressing the action Tar GZ archive.$/,
    ],
  ])('archive: %s', (_, code, initError) => checkCase(launch, { name: '', code, binary: true, initError }));

  test('a tar.gz', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-tar-'));
    try {
      writeFileSync(join(folder, 'index.js'), 'exports.main = () => ({a: 1})');
      execFileSync('tar', ['-czf', 'a.tgz', 'index.js'], { cwd: folder });
      const code = readFileSync(join(folder, 'a.tgz')).toString('base64');
      await checkCase(launch, { name: '', code, binary: true, result: { a: 1 } });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('a zip cannot write outside the folder of the action', async () => {
    const runtime = new RuntimeProcess(launch);
    try {
      mkdirSync(join(runtime.folder, 'sub'));
      const archive = new AdmZip();
      archive.addFile('aaaaaaaaaaa', Buffer.from('x'));
      const bytes = archive.toBuffer();
      const climbing = Buffer.from(bytes.toString('latin1').replaceAll('aaaaaaaaaaa', '../../../zz'), 'latin1');
      const answer = await runtime.init({ code: climbing.toString('base64'), binary: true });
      expect(answer.isError).toBe(true);
      expect(() => readFileSync(join(dirname(dirname(dirname(runtime.folder))), 'zz'))).toThrow();
    } finally {
      await runtime.close();
    }
  });

  test.each([
    ['process.env', 'const main = () => ({ id: process.env.__OW_ACTIVATION_ID })'],
    ['an environment kept from before', 'const { env } = process; const main = () => ({ id: env.__OW_ACTIVATION_ID })'],
    ['a copy of it', 'const { env } = process; const main = () => ({ id: { ...env }.__OW_ACTIVATION_ID })'],
    [
      'one that the action put in its place',
      'process.env = { a: 1 }; const main = () => ({ id: process.env.__OW_ACTIVATION_ID })',
    ],
    [
      'a child process',
      `const main = () => ({ id: require('child_process').execSync('echo $__OW_ACTIVATION_ID').toString().trim() })`,
    ],
    [
      'a worker',
      `const { Worker } = require('worker_threads');
      const main = () => new Promise((resolve) => {
        const text = "require('worker_threads').parentPort.postMessage({ id: process.env.__OW_ACTIVATION_ID })";
        new Worker(text, { eval: true }).on('message', resolve);
      });`,
    ],
  ])("a run's variables are in %s, of a pre-warmer, too", async (_, code) => {
    for (const prewarm of ['', 'true']) {
      await checkVariables(new RuntimeProcess(launch, { GPUWHISK_PREWARM: prewarm }), code);
    }
  });

  async function checkVariables(runtime: RuntimeProcess, code: string): Promise<void> {
    try {
      await runtime.init({ code });
      expect((await runtime.run({}, { activation_id: 'one' })).body).toEqual({ id: 'one' });
      expect((await runtime.run({}, { activation_id: 'two' })).body).toEqual({ id: 'two' });
    } finally {
      await runtime.close();
    }
  }

  test.each([
    ['that another thread has open for a moment', 'true', ''],
    ['that stays', 'false', 'descriptors'],
  ])('a descriptor %s', (_, closes, left) => {
    const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-leftovers-'));
    try {
      const code = `const fs = require('fs');
        const { Leftovers } = require(${JSON.stringify(join(runtimesDir, 'nodejs', 'leftovers.cjs'))});
        const leftovers = new Leftovers([], []);
        const fd = fs.openSync('/');
        leftovers.differences().then((left) => console.log(left.join()));
        const close = async () => {
          for (let hop = 0; hop < 20; hop += 1) await undefined;
          fs.closeSync(fd);
        };
        if (${closes}) void close();`;
      expect(execFileSync(process.execPath, ['-e', code], { cwd: folder, encoding: 'utf8' }).trim()).toBe(left);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('modules that are to be loaded ahead are, and one that is missing shows in the log', async () => {
    const runtime = new RuntimeProcess(launch, { GPUWHISK_IMPORTS: 'node:zlib no-such-module' });
    try {
      const code = `const seen = process.env.GPUWHISK_IMPORTS ?? 'nothing';
        const main = () => ({ seen, loaded: process.moduleLoadList.includes('NativeModule zlib') })`;
      const answer = await runtime.init({ code });
      expect(answer.stderr).toMatch(/'no-such-module' of annotation 'warm' was not loaded: Cannot find module/);
      expect((await runtime.run({})).body).toEqual({ seen: 'nothing', loaded: true });
    } finally {
      await runtime.close();
    }
  });

  test('what an action does to its environment stays', async () => {
    const runtime = new RuntimeProcess(launch);
    try {
      const code = `const main = ({ name }) => {
        const before = name in process.env;
        process.env[name] = 'mine';
        delete process.env.__OW_ACTIVATION_ID;
        return { before, after: process.env[name], left: '__OW_ACTIVATION_ID' in process.env };
      }`;
      await runtime.init({ code });
      expect((await runtime.run({ name: 'A' })).body).toEqual({ before: false, after: 'mine', left: false });
      expect((await runtime.run({ name: 'A' })).body).toEqual({ before: true, after: 'mine', left: false });
    } finally {
      await runtime.close();
    }
  });
});
