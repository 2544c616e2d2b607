// npm start of a fresh clone, as far as it goes without a registry: what is installed, transpiled, and told of failures.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
/** What scripts read before anything is installed. */
const copied = [
  ...['package.json', 'package-lock.json', 'tsconfig.base.json', 'scripts', 'runtimes/nodejs/packages'],
  ...['runtimes/python/packages.txt', 'README.md', 'CONTRIBUTING.md', 'GUARANTEES.md', 'gpu/README.md'],
  ...['native/README.md', 'native/build.mjs', 'native/compile.mjs'],
];

let folder: string;
let clone: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-fresh-'));
  clone = join(folder, 'clone');
  for (const path of copied) cpSync(join(root, path), join(clone, path), { recursive: true });
  for (const path of ['docs', 'examples', 'research']) mkdirSync(join(clone, path));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a script with an npm that notes its arguments and does `work`. */
function run(script: string, work: string): { status: number | null; stdout: string; stderr: string; asked: string[] } {
  const bin = join(folder, 'bin');
  const notes = join(folder, 'asked');
  mkdirSync(bin, { recursive: true });
  rmSync(notes, { force: true });
  writeFileSync(join(bin, 'npm'), `#!/bin/sh\necho "$*" >> ${notes}\n${work}\n`, { mode: 0o755 });
  const { status, stdout, stderr } = spawnSync(process.execPath, [join('scripts', script)], {
    ...{ cwd: clone, encoding: 'utf8', timeout: 60_000 },
    env: { ...process.env, NODE_OPTIONS: '', PATH: [bin, process.env['PATH']].join(delimiter) },
  });
  return { status, stdout, stderr, asked: existsSync(notes) ? readFileSync(notes, 'utf8').trim().split('\n') : [] };
}

const fails = (code: string): string => `echo "npm error code ${code}" >&2; exit 1`;

test.each([
  [fails('ENOTFOUND'), /^npm cannot reach its registry \(ENOTFOUND\): check the network and .*, and try again\.\n$/],
  [fails('ENOSPC'), /^The disk is full: free about 1 GB, and try again\.\n$/],
  [fails('EUSAGE'), /^npm could not install the dependencies:\nnpm error code EUSAGE\n/],
] as const)('npm start explains an npm that ends after: %s', (work, told) => {
  const { status, stdout, stderr } = run('start.mjs', work);
  expect({ status, stdout, stderr }).toEqual({
    status: 1,
    stdout: 'Installing dependencies (once) ...\n',
    stderr: expect.stringMatching(told),
  });
});

test('npm start installs what the server needs; other commands add the rest, and a failure of that takes nothing away', () => {
  const lock = readFileSync(join(clone, 'package-lock.json'));
  // The build that follows fails: nothing is really installed.
  expect(run('start.mjs', 'mkdir -p node_modules').asked).toEqual([
    expect.stringMatching(/^ci .*--omit=dev .*--workspace=standalone .*--workspace=console$/),
  ]);
  const { status, stderr, asked } = run('lint.mjs', fails('EAI_AGAIN'));
  expect([status, asked]).toEqual([1, ['install --no-save --no-audit --no-fund']]);
  expect(stderr).toMatch(/^npm cannot reach its registry \(EAI_AGAIN\)/);
  expect(run('start.mjs', fails('EAI_AGAIN')).asked).toEqual([]);
  expect(readFileSync(join(clone, 'package-lock.json'))).toEqual(lock);
});

test('an installation that is killed is done again from its beginning', () => {
  expect(run('start.mjs', 'mkdir -p node_modules; kill -9 $PPID').status).toBe(null);
  expect(run('start.mjs', fails('EAI_AGAIN')).asked).toEqual([expect.stringMatching(/^ci /)]);
});

/** A package of the clone with these sources, and the tools of this clone. */
function makePackage(sources: Readonly<Record<string, string>>): void {
  symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'));
  mkdirSync(join(clone, 'common', 'src'), { recursive: true });
  const options = { rootDir: 'src', outDir: 'dist', types: [] };
  const config = { extends: '../tsconfig.base.json', compilerOptions: options, include: ['src'] };
  writeFileSync(join(clone, 'common', 'tsconfig.json'), JSON.stringify(config));
  writeFileSync(join(clone, 'tsconfig.json'), JSON.stringify({ files: [], references: [{ path: 'common' }] }));
  const research = { files: [], references: [{ path: '../common' }] };
  writeFileSync(join(clone, 'research', 'tsconfig.json'), JSON.stringify(research));
  for (const [name, text] of Object.entries(sources)) writeFileSync(join(clone, 'common', 'src', name), text);
}

/** Transpiles the package in a process of its own; gives which packages changed, or the failure. */
function transpile(): string {
  const script = `
    const { transpile } = await import('./scripts/transpile.mjs');
    await transpile(['common'], (changed) => console.log('changed ' + changed)).catch(({ message }) => console.log(message));`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    ...{ cwd: clone, encoding: 'utf8', timeout: 60_000 },
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  return stdout;
}

const built = (): string[] => readdirSync(join(clone, 'common', 'dist')).sort();

test('a package is transpiled where its sources changed, and what they no longer make is removed', () => {
  makePackage({ 'one.ts': 'export const one: number = 1;', 'one.test.ts': 'export {};' });
  expect(transpile()).toBe('changed common\n');
  expect(built()).toEqual(['one.js', 'one.js.map', 'one.test.js', 'one.test.js.map']);
  const made = (): number => statSync(join(clone, 'common', 'dist', 'one.js')).mtimeMs;
  const before = made();
  expect(transpile()).toBe('');
  rmSync(join(clone, 'common', 'src', 'one.test.ts'));
  expect(transpile()).toBe('changed common\n');
  expect([built(), made()]).toEqual([['one.js', 'one.js.map'], before]);
  writeFileSync(join(clone, 'build', 'transpiled.json'), '{"common/src/one.ts": "0');
  expect(transpile()).toBe('changed common\n');
});

test('a source that does not parse is named, and done again when it does', () => {
  makePackage({ 'one.ts': 'export const one = ;' });
  expect(transpile()).toMatch(/^changed common\n[^]*common\/src\/one\.ts:1:19: ERROR: /);
  writeFileSync(join(clone, 'common', 'src', 'one.ts'), 'export const one = 1;');
  expect(transpile()).toBe('changed common\n');
  expect(readFileSync(join(clone, 'common', 'dist', 'one.js'), 'utf8')).toMatch(/^const one = 1;\n/);
});

test('a wrong type, which transpiles, ends npm run lint', () => {
  makePackage({ 'one.ts': "export const one: number = 'one';" });
  const { status, stderr } = run('lint.mjs', 'exit 0');
  expect(stderr).toMatch(/^Types do not hold:\n.*common\/src\/one\.ts\(1,14\): error TS2322/);
  expect(status).toBe(1);
});

/** Runs works behind a process as npm start does; gives the lines of what the process saw. */
function runBehind(program: string, asks: string): string[] {
  writeFileSync(join(clone, 'program.mjs'), program);
  const script = `
    const { startBehind } = await import('./scripts/behind.mjs');
    const { isComing, ready } = globalThis[Symbol.for('gpuwhisk.behind')];
    const ended = startBehind('program.mjs', ['one', 'two']);
    const say = (...words) => console.log(...words);
    // The works keep no process alive, as a server does.
    setInterval(() => undefined, 1000);
    ${asks}
    process.exit();`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    ...{ cwd: clone, encoding: 'utf8', timeout: 60_000 },
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  return stdout.trim().split('\n');
}

test('what something waits for is built first behind the server', () => {
  const program = `
    const left = process.argv.slice(3);
    process.on('message', (work) => {
      left.splice(left.indexOf(work), 1);
      process.send({ work });
      for (const other of left) process.send({ work: other, failure: 'no compiler' });
      process.disconnect();
    });`;
  const asks = `
    say(isComing('one'), isComing('two'), isComing('three'));
    await ready('two');
    say(isComing('two'));
    say(await ended);
    await ready('one').catch(({ message }) => say(message));
    await ready('three');
    say(isComing('one'));`;
  expect(runBehind(program, asks)).toEqual(['true true false', 'false', 'false', 'no compiler', 'false']);
});

test('a build behind the server that dies is told to those who wait', () => {
  const asks = `await ready('one').catch(({ message }) => say(message)); say(await ended);`;
  expect(runBehind("process.on('message', () => process.kill(process.pid, 'SIGKILL'));", asks)).toEqual([
    'The build behind the server ended with SIGKILL: the next start goes on with it.',
    'false',
  ]);
});

test('a build behind the server ends with it', () => {
  const program = `import { writeFileSync } from 'node:fs';
    process.on('disconnect', () => { writeFileSync('ended', ''); process.exit(); });
    process.send({ work: 'one' });`;
  runBehind(program, `await ready('one');`);
  const ended = join(clone, 'ended');
  for (let wait = 0; wait < 100 && !existsSync(ended); wait += 1) spawnSync('sleep', ['0.1']);
  expect(existsSync(ended)).toBe(true);
});
