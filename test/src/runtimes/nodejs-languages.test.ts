// ES modules and TypeScript in the Node.js runtime: in this release of Node.js, and in a newer one.
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from '@jest/globals';
import AdmZip from 'adm-zip';
import { nodeLaunch, withNodePair } from '@gpuwhisk/invoker/runtimes/node-runtime';
import { newerNode, olderNode } from '../support/node-releases.js';
import { checkCase, InjectedCases } from './runtime-cases.js';
import type { RuntimeCase } from './runtime-cases.js';
import { RuntimeProcess } from './runtime-harness.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));

function zip(files: Record<string, string>): string {
  const archive = new AdmZip();
  for (const [name, text] of Object.entries(files)) archive.addFile(name, Buffer.from(text));
  return archive.toBuffer().toString('base64');
}

const zipped = (name: string, files: Record<string, string>, rest: Partial<RuntimeCase>): RuntimeCase => ({
  name: `zip: ${name}`,
  code: zip(files),
  binary: true,
  ...rest,
});

const modules: RuntimeCase[] = [
  {
    name: 'export function main',
    code: 'export function main(args) { return args }',
    value: { a: 1 },
    result: { a: 1 },
  },
  { name: 'export default', code: 'export default (args) => args', value: { a: 1 }, result: { a: 1 } },
  {
    name: 'export default of an object',
    code: 'export default { main: (args) => args }',
    value: { a: 1 },
    result: { a: 1 },
  },
  {
    name: 'an error, at its line',
    code: '\n\nexport function main() { throw new Error("boom") }',
    runError: /boom/,
    stderr: /index\.mjs:3:/,
  },
  zipped('index.mjs', { 'index.mjs': 'export const main = (args) => args' }, { value: { a: 1 }, result: { a: 1 } }),
  zipped(
    'type module, and a file beside',
    {
      'package.json': '{"type":"module"}',
      'index.js': 'import { b } from "./b.js"; export default () => ({ b })',
      'b.js': 'export const b = 2',
    },
    { result: { b: 2 } },
  ),
  zipped(
    'a main of its own',
    { 'package.json': '{"type":"module","main":"src/start.js"}', 'src/start.js': 'export const main = () => ({a: 1})' },
    { result: { a: 1 } },
  ),
  zipped('no type', { 'index.js': 'export default () => ({a: 1})' }, { result: { a: 1 } }),
  zipped(
    'another file',
    { 'other.mjs': 'export const go = () => ({a: 1})' },
    {
      main: 'other.go',
      result: { a: 1 },
    },
  ),
];

const typed: RuntimeCase[] = [
  {
    name: 'main in scope',
    code: 'interface Args { a?: number }\nfunction main(args: Args): Args { return args }',
    value: { a: 1 },
    result: { a: 1 },
  },
  {
    name: 'exports',
    code: "const os = require('os');\nexports.main = (args: object) => ({ eol: os.EOL, ...args as {} })",
    result: { eol: '\n' },
  },
  {
    name: 'an ES module',
    code: "import { EOL } from 'os';\nimport type { Stats } from 'fs';\nexport const main = (args: any): object => ({ eol: EOL })",
    result: { eol: '\n' },
  },
  {
    name: 'a default export with top-level await',
    code: 'const a: number = await Promise.resolve(1);\nexport default () => ({ a })',
    result: { a: 1 },
  },
  {
    name: 'an error, at its line and column',
    code: 'type A = { a: number };\n\nfunction main(args: A) { throw new Error("boom") }',
    runError: 'An error has occurred: Error: boom',
    stderr: /index\.ts:3:32/,
  },
  {
    name: 'an error of an ES module, at its line and column',
    code: 'type A = { a: number };\n\nexport function main(args: A) { throw new Error("boom") }',
    runError: 'An error has occurred: Error: boom',
    stderr: /index\.mts:3:39/,
  },
  {
    name: 'bad syntax',
    code: 'function main(args: any) {\n  const x: = 1;\n}',
    initError: /index\.ts:2\n.*\n {2}const x: = 1;\n {11}\^/,
    stderr: /index\.ts:2/,
  },
  {
    name: 'bad syntax of an ES module',
    code: 'export function main(args: any) {\n  const x: = 1;\n}',
    initError: /index\.mjs:2\n.*\n {2}const x: = 1;\n {11}\^/,
  },
  {
    name: 'what is more than types',
    code: 'enum Color { red }\nfunction main(args: any) { return { red: Color.red } }',
    initError: /index\.ts:1\nenum Color[^]*SyntaxError.*: TypeScript enum is not supported in strip-only mode/,
  },
  {
    name: 'JavaScript with bad syntax, in the words of its own parser',
    code: 'function main(args) {\n  return { a: ; }\n}',
    initError: /index\.js:2\n {2}return \{ a: ; \}\n.*\n\nSyntaxError: Unexpected token ';'/,
  },
  {
    name: 'JavaScript that throws such an error',
    code: 'JSON.parse("{"); function main() {}',
    initError: /SyntaxError: Expected property name/,
  },
  zipped(
    'index.ts',
    {
      'index.ts': 'import { b } from "./b.ts";\nexport function main(args: any) { return { b } }',
      'b.ts': 'export const b: number = 2',
    },
    { result: { b: 2 } },
  ),
  zipped(
    'a main of its own, and a package',
    {
      'package.json': '{"main":"src/start.ts"}',
      'src/start.ts': "const dep = require('dep');\nexports.main = (args: any) => ({ dep })",
      'node_modules/dep/index.js': 'module.exports = 42',
    },
    { result: { dep: 42 } },
  ),
  zipped('a default export', { 'index.mts': 'export default (args: object): object => args' }, { result: {} }),
  zipped(
    'another file',
    { 'other.ts': 'export const go = (args: any) => ({a: 1})' },
    { main: 'other.go', result: { a: 1 } },
  ),
];

const releases = [
  { name: 'this Node.js', program: process.execPath },
  ...(newerNode === process.execPath ? [] : [{ name: 'Node.js 24', program: newerNode }]),
  ...(olderNode === undefined ? [] : [{ name: 'Node.js 20', program: olderNode }]),
];

describe.each(releases)('ES modules in $name', ({ program }) => {
  const run = program === undefined ? test.skip : test;
  const launch = nodeLaunch(runtimesDir, program ?? '');
  const injected = new InjectedCases(() => withNodePair(launch).pair ?? launch);
  afterAll(() => injected.close());
  run.each(modules)('$name', (given) => checkCase(launch, given));
  run.each(modules)('in a pre-warmer: $name', (given) => injected.check(given));
});

describe('TypeScript in Node.js 24', () => {
  const run = newerNode === undefined ? test.skip : test;
  const launch = nodeLaunch(runtimesDir, newerNode ?? '');
  const injected = new InjectedCases(() => withNodePair(launch).pair ?? launch);
  afterAll(() => injected.close());
  run.each(typed)('$name', (given) => checkCase(launch, given));
  run.each(typed)('in a pre-warmer: $name', (given) => injected.check(given));

  run('a pre-warmer that ran it takes no other action', async () => {
    const runtime = new RuntimeProcess(withNodePair(launch).pair ?? launch, { GPUWHISK_PREWARM: 'true' });
    try {
      await runtime.init({ code: 'function main(args: object) { return args }' });
      expect((await runtime.run({ a: 1 })).body).toEqual({ a: 1 });
      expect((await runtime.unload()).isError).toBe(true);
    } finally {
      await runtime.close();
    }
  });

  run('the log has nothing but what the action printed', async () => {
    await checkCase(launch, {
      name: '',
      code: 'function main(args: object) { console.log("x"); return args }',
      result: {},
      stdout: 'x\n',
      stderr: '',
    });
  });
});

const withoutTypes = olderNode === undefined ? undefined : describe;
withoutTypes?.('TypeScript in a Node.js without it', () => {
  const launch = nodeLaunch(runtimesDir, olderNode ?? '');
  test('source fails with a line that says which kind runs it', () =>
    checkCase(launch, {
      name: '',
      code: 'function main(args: object) { return args }',
      initError: /SyntaxError/,
      stderr: /\nIf the code is TypeScript, create the action with --kind nodejs:24/,
    }));
  test('JavaScript with bad syntax says nothing of it', () =>
    checkCase(launch, {
      name: '',
      code: 'function main( {',
      initError: /SyntaxError/,
      stderr: /input\n(?!.*TypeScript)/s,
    }));
  test('an archive is refused with the kind that runs it', () =>
    checkCase(launch, {
      ...zipped('', { 'index.ts': 'export const main = (args: any) => args' }, {}),
      initError: /'index.ts' is TypeScript, which nodejs:\d+ cannot run: create the action with --kind nodejs:24/,
    }));
});
