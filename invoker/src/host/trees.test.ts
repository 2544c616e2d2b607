// Walks over folders that another process changes meanwhile.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { builtPath } from './native-programs.js';
import { measureTree, ownTree, removeTree } from './trees.js';

const isRoot = process.getuid?.() === 0;
/** Perl makes the system call that exchanges two names. */
const canExchange = process.arch === 'x64' && existsSync('/usr/bin/perl') && existsSync(builtPath('tree.node'));
const withAddon = existsSync(builtPath('tree.node')) ? test : test.skip;
const names = Array.from({ length: 40 }, (_, at) => `file${at}`);
const rounds = 100;

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'gpuwhisk-trees-'));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

function fill(folder: string, content = ''): void {
  mkdirSync(folder, { recursive: true });
  for (const name of names) writeFileSync(join(folder, name), content);
}

/** A process that exchanges `a` and `b` in all of the folders until it is killed; resolves once it does. */
async function exchangeIn(folders: readonly string[]): Promise<ChildProcess> {
  const script = `$| = 1; my @f = @ARGV; my $said = 0; while (1) { for my $f (@f) { my ($a, $b) = ("$f/a", "$f/b");
    syscall(316, -100, $a, -100, $b, 2); } print "on\\n" unless $said++; }`;
  const child = spawn('/usr/bin/perl', ['-e', script, ...folders], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  return child;
}

(canExchange ? test : test.skip)('follow no link that is exchanged with a folder while they go on', async () => {
  const victim = join(base, 'victim');
  fill(victim, 'x'.repeat(100_000));
  const folders = Array.from({ length: rounds }, (_, at) => join(base, 'tree', String(at)));
  for (const folder of folders) {
    fill(join(folder, 'a'));
    symlinkSync(victim, join(folder, 'b'));
  }
  const child = await exchangeIn(folders);
  try {
    if (isRoot) await ownTree(join(base, 'tree'), 12345);
    // Blocks of the folders only: the files are empty.
    const blockBytes = 4096;
    expect((await measureTree(join(base, 'tree'), 1e6)).bytes).toBeLessThanOrEqual(rounds * 8 * blockBytes);
    await removeTree(join(base, 'tree'));
  } finally {
    child.kill('SIGKILL');
  }
  expect(existsSync(join(base, 'tree'))).toBe(false);
  expect(readdirSync(victim).sort()).toEqual([...names].sort());
  expect(names.map((name) => lstatSync(join(victim, name)).uid)).toEqual(names.map(() => process.getuid?.()));
  expect(lstatSync(victim).uid).toBe(process.getuid?.());
});

test('a folder is removed with links, which stay where they point to', async () => {
  fill(join(base, 'kept'));
  fill(join(base, 'tree', 'inner'));
  symlinkSync(join(base, 'kept'), join(base, 'tree', 'link'));
  symlinkSync('nowhere', join(base, 'tree', 'inner', 'broken'));
  expect(await measureTree(join(base, 'tree'), 1e6)).toMatchObject({ files: names.length + 3 });
  await removeTree(join(base, 'tree'));
  expect(readdirSync(base)).toEqual(['kept']);
  expect(readdirSync(join(base, 'kept'))).toHaveLength(names.length);
  symlinkSync(join(base, 'kept'), join(base, 'tree'));
  await removeTree(join(base, 'tree'));
  expect(readdirSync(join(base, 'kept'))).toHaveLength(names.length);
  await removeTree(join(base, 'tree'));
  await removeTree(join(base, 'absent', 'tree'));
});

withAddon('folders that nest deeper than paths and descriptors reach are removed, and not measured', async () => {
  const script = `mkdir $ARGV[0]; chdir $ARGV[0]; for (1 .. 5000) { mkdir 'd'; chdir 'd' or die; }`;
  const made = spawn('/usr/bin/perl', ['-e', script, join(base, 'deep')]);
  await new Promise((resolve) => made.once('close', resolve));
  await expect(measureTree(join(base, 'deep'), 1e6)).rejects.toMatchObject({ code: 'ELOOP' });
  await removeTree(join(base, 'deep'));
  expect(readdirSync(base)).toEqual([]);
});

(isRoot ? withAddon : test.skip)('a folder is given to a user, and a link in it without its target', async () => {
  fill(join(base, 'kept'));
  fill(join(base, 'tree'));
  symlinkSync(join(base, 'kept'), join(base, 'tree', 'link'));
  chownSync(join(base, 'tree'), 12345, 12345);
  await ownTree(join(base, 'tree'), 0);
  await ownTree(join(base, 'tree'), 54321);
  expect(lstatSync(join(base, 'tree')).uid).toBe(54321);
  expect(lstatSync(join(base, 'tree', 'link')).uid).toBe(54321);
  expect(lstatSync(join(base, 'kept')).uid).toBe(0);
  await expect(ownTree(join(base, 'absent'), 0)).rejects.toMatchObject({ code: 'ENOENT' });
});

test('counting stops above the bound', async () => {
  fill(join(base, 'tree'));
  const { files } = await measureTree(join(base, 'tree'), 10);
  expect(files).toBeGreaterThan(10);
  expect(files).toBeLessThan(names.length);
  await expect(measureTree(join(base, 'absent'), 10)).rejects.toMatchObject({ code: 'ENOENT' });
});
