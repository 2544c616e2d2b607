// The Node.js that scripts of package.json and programs of bin/ run by: the machine's, or the clone's own, which is fetched.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const { engines, scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  engines: { node: string };
  scripts: Record<string, string>;
};
const ownScripts = Object.entries(scripts).filter(([name]) => name !== 'format');
const programs = ['gpuwhisk', 'wsk', 'wskadmin'];
/** A release that the test's package claims to be. */
const ownVersion = '24.99.1';
const key = `${process.platform}-${process.arch}`;

let folder: string;
let clone: string;
let bin: string;
let programOfOwn: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-own-node-'));
  clone = join(folder, 'clone');
  bin = join(folder, 'bin');
  mkdirSync(join(clone, 'scripts'), { recursive: true });
  mkdirSync(bin);
  // Nothing else: a script that used the program before its Node.js is there would fail.
  for (const name of ['node', 'own-node.cjs', 'own-node.txt', 'node-version.cjs'])
    cpSync(join(root, 'scripts', name), join(clone, 'scripts', name));
  programOfOwn = join(clone, 'build', 'node', `${ownVersion}-${key}`, 'bin', 'node');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A program that tells this version, and is else this Node.js. */
const nodeOf = (version: string, ...flags: string[]): string =>
  `#!/bin/sh\n[ "$*" = --version ] && echo v${version} && exit\nexec ${[process.execPath, ...flags].join(' ')} "$@"\n`;

/** Makes the machine's Node.js one of this version, also for what it runs. */
function haveNode(version: string): void {
  const old = join(folder, 'old.cjs');
  writeFileSync(
    old,
    `Object.defineProperty(process, 'version', { value: 'v${version}' });
     Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`,
  );
  writeFileSync(join(bin, 'node'), nodeOf(version, '-r', old), { mode: 0o755 });
}

/** Makes an npm that notes its arguments and does `work`. */
function haveNpm(work: string): void {
  writeFileSync(join(bin, 'npm'), `#!/bin/sh\necho "$*" >> ${join(folder, 'asked')}\n${work}\n`, { mode: 0o755 });
}

const asked = (): string[] =>
  existsSync(join(folder, 'asked')) ? readFileSync(join(folder, 'asked'), 'utf8').trim().split('\n') : [];

/** A registry whose package has this program; the clone pins it. */
function havePackage(program: string): void {
  const content = join(folder, 'content', 'package');
  mkdirSync(join(content, 'bin'), { recursive: true });
  writeFileSync(join(content, 'bin', 'node'), program, { mode: 0o755 });
  writeFileSync(join(content, 'LICENSE'), '');
  const archive = join(folder, 'package.tgz');
  expect(spawnSync('tar', ['-czf', archive, '-C', dirname(content), 'package']).status).toBe(0);
  const digest = createHash('sha512').update(readFileSync(archive)).digest('base64');
  writeFileSync(join(clone, 'scripts', 'own-node.txt'), `${ownVersion}\n${key} sha512-${digest}\n`);
  haveNpm(`sleep 0.2; cp ${archive} node-${key}-${ownVersion}.tgz`);
}

const environment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  NODE_OPTIONS: '',
  PATH: `${bin}:${process.env['PATH']}`,
});

function run(command: string): { status: number | null; stdout: string; stderr: string; pid: number } {
  const options = { cwd: clone, env: environment(), encoding: 'utf8', timeout: 60_000 } as const;
  const { status, stdout, stderr, pid } = spawnSync('sh', ['-c', command], options);
  return { status, stdout, stderr, pid };
}

const tellsVersion = `exec scripts/node -p 'require("child_process").execFileSync("node", ["--version"]) + ""'`;

test('every script of package.json but the one of a tool is run by scripts/node', () => {
  for (const [, command] of ownScripts) expect(command).toMatch(/^(exec )?scripts\/node /);
});

test.each([...ownScripts, ...programs.map((name) => [`program ${name}`, `bin/${name}`] as const)])(
  '%s is one clear line on an old Node.js without a network, before anything is parsed',
  (_, command) => {
    cpSync(join(root, 'bin'), join(clone, 'bin'), { recursive: true });
    haveNode('12.22.12');
    haveNpm('echo "npm error code ENOTFOUND" >&2; exit 1');
    const { status, stdout, stderr } = run(command);
    expect({ status, stdout, stderr }).toEqual({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^Fetching (Node\.js 24[.\d]+) \(once\) \.\.\.\ngpuwhisk needs Node\.js 22 \(from 22\.22 on\), 24 \(from 24\.6 on\) or newer; this is v12\.22\.12\. \1 could not be fetched: npm cannot reach its registry \(ENOTFOUND\)\. Check the network and npm's settings 'registry' and 'proxy', and try again, or install Node\.js 24\.\n$/,
      ),
    });
  },
);

describe('the Node.js of the machine', () => {
  test.each([
    ['22.22.0', true],
    ['22.30.1', true],
    ['24.6.0', true],
    ['25.0.0', true],
    ['24.18.2', true],
    ['26.1.0', true],
    ['30.0.0', true],
    ['8.17.0', false],
    ['18.20.8', false],
    ['20.20.2', false],
    ['22.2.0', false],
    ['22.21.9', false],
    ['23.11.1', false],
    ['24.5.9', false],
  ])('%s is used: %p', (version, isUsed) => {
    expect(engines.node).toBe('^22.22.0 || >=24.6.0');
    haveNode(version);
    havePackage(nodeOf(ownVersion));
    expect(run(tellsVersion).stdout.trim()).toBe(`v${isUsed ? version : ownVersion}`);
    expect(asked().length).toBe(isUsed ? 0 : 1);
    const direct = run('exec node scripts/node-version.cjs');
    expect([direct.status, direct.stderr]).toEqual(
      isUsed ? [0, ''] : [1, expect.stringMatching(/^gpuwhisk needs .* Use scripts\/node in place of node, .*\.\n$/)],
    );
  });

  test('may be missing where the own one is there, as in a release', () => {
    haveNode('20.20.2');
    havePackage(nodeOf(ownVersion));
    run(tellsVersion);
    rmSync(join(bin, 'node'));
    for (const name of ['uname', 'sh', 'readlink', 'dirname']) {
      symlinkSync(spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim(), join(bin, name));
    }
    cpSync(join(root, 'bin'), join(clone, 'bin'), { recursive: true });
    writeFileSync(join(clone, 'scripts', 'program.cjs'), `console.log('ran', process.argv.slice(2)); process.exit(3);`);
    symlinkSync(join(clone, 'bin', 'wsk'), join(bin, 'wsk'));
    const { status, stdout } = spawnSync('wsk', ['a b', 'c'], { env: { PATH: bin }, encoding: 'utf8' });
    expect([stdout, status]).toEqual(["ran [ 'a b', 'c' ]\n", 3]);
  });
});

describe('the own Node.js', () => {
  beforeEach(() => {
    haveNode('20.20.2');
    havePackage(nodeOf(ownVersion));
  });

  test('is fetched once, without leftovers, and is what programs find on the PATH', () => {
    const first = run(tellsVersion);
    expect({ ...first, pid: 0 }).toEqual({
      ...{ status: 0, stdout: `v${ownVersion}\n\n`, pid: 0 },
      stderr: `Fetching Node.js ${ownVersion} (once) ...\n`,
    });
    expect(asked()).toEqual([
      expect.stringMatching(new RegExp(`^pack node-${key}@${ownVersion} .*--fetch-retries=2 `)),
    ]);
    const second = run(tellsVersion);
    expect([second.stdout, second.stderr, asked().length]).toEqual([first.stdout, '', 1]);
    expect(readdirSync(join(clone, 'build', 'node'))).toEqual([`${ownVersion}-${key}`]);
  });

  test('takes the place of the process that was started, with its arguments and its exit code', () => {
    const { status, stdout, pid } = run(
      `exec scripts/node -e 'console.log(process.pid, process.argv[1]); process.exit(7)' 'a b'`,
    );
    expect([status, stdout]).toEqual([7, `${pid} a b\n`]);
  });

  test('is fetched again if it is damaged', () => {
    run(tellsVersion);
    truncateSync(programOfOwn);
    expect(run(tellsVersion).stdout.trim()).toBe(`v${ownVersion}`);
    expect([asked().length, readdirSync(join(clone, 'build', 'node'))]).toEqual([2, [`${ownVersion}-${key}`]]);
  });

  test('is fetched by two starts at a time, and the leftovers of one that was killed are removed', async () => {
    const left = join(clone, 'build', 'node', '.partial-killed');
    mkdirSync(left, { recursive: true });
    utimesSync(left, 1, 1);
    const starts = [1, 2, 3].map(async () => {
      const child = spawn('sh', ['-c', tellsVersion], {
        cwd: clone,
        env: environment(),
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const [told] = await Promise.all([text(child.stdout), once(child, 'exit')]);
      return told.trim();
    });
    expect(await Promise.all(starts)).toEqual([1, 2, 3].map(() => `v${ownVersion}`));
    expect(readdirSync(join(clone, 'build', 'node'))).toEqual([`${ownVersion}-${key}`]);
  });

  test.each([
    [
      'another package',
      () => haveNpm(`echo no | gzip > node.tgz`),
      /^npm's registry has another package node-\S+ than gpuwhisk was made with: sha512-\S+\.$/,
    ],
    [
      'a program that does not run',
      () => havePackage('#!/bin/sh\necho no loader >&2; exit 1\n'),
      /^Node\.js \S+ does not run on this machine: no loader$/,
    ],
    [
      'a package without its program',
      () => havePackage(nodeOf('24.0.0')),
      /^Node\.js \S+ does not run on this machine: it tells v24\.0\.0$/,
    ],
    [
      'no npm',
      () => haveNpm('exit 127'),
      /^Node\.js \S+ could not be fetched: npm ended with 127\. Check the network .*, or install Node\.js 24\.$/,
    ],
    [
      'a full disk',
      () => haveNpm('echo "npm error code ENOSPC" >&2; exit 1'),
      /^Node\.js \S+ could not be fetched: the disk is full\. /,
    ],
    [
      'a version that a mirror lacks',
      () => haveNpm('echo "npm error code ETARGET\nnpm error notarget No matching version" >&2; exit 1'),
      /could not be fetched: npm error notarget No matching version\. Check /,
    ],
  ])('is not used from %s, which is told in one line', (_, prepare, told) => {
    prepare();
    const { status, stdout, stderr } = run(tellsVersion);
    const [fetching, line = '', end] = stderr.split('\n');
    expect([status, stdout, fetching, end]).toEqual([1, '', `Fetching Node.js ${ownVersion} (once) ...`, '']);
    const needs = 'gpuwhisk needs Node.js 22 (from 22.22 on), 24 (from 24.6 on) or newer; this is v20.20.2. ';
    expect(line.slice(0, needs.length)).toBe(needs);
    expect(line.slice(needs.length)).toMatch(told);
    expect(readdirSync(join(clone, 'build', 'node'))).toEqual([]);
  });

  test('is told to be missing for another processor', () => {
    writeFileSync(join(clone, 'scripts', 'own-node.txt'), `${ownVersion}\nlinux-other sha512-x\n`);
    expect(run(tellsVersion).stderr).toMatch(
      /^gpuwhisk needs .* There is none to fetch for \S+: install Node\.js 24\.\n$/,
    );
  });
});
