// Output of the scripts of package.json.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-scripts-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test.each([
  [['--help'], 0, 'stdout', /^Usage: npm run cluster -- \[flags\]\n/],
  [['--controler', '3'], 1, 'stderr', /^Unknown option '--controler'.*\n\nUsage: npm run cluster/],
  [['--invokers', '0'], 1, 'stderr', /^--controllers and --invokers take a number from 1 to 20\n$/],
] as const)('npm run cluster -- %p explains itself', (flags, code, stream, text) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/cluster.mjs', ...flags], {
    ...{ cwd: root, encoding: 'utf8', timeout: 30_000 },
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  expect({ status, text: { stdout, stderr }[stream] }).toEqual({ status: code, text: expect.stringMatching(text) });
});

interface Locked {
  optionalDependencies?: Record<string, string>;
}

/** Optional packages that a lock file names without an entry of their own; `npm ci` refuses such a file. */
function missingIn(lock: string): string[] {
  const { packages } = JSON.parse(readFileSync(join(root, lock), 'utf8')) as { packages: Record<string, Locked> };
  const isHeld = (from: string, name: string): boolean => {
    if (`${from}${from === '' ? '' : '/'}node_modules/${name}` in packages) return true;
    return (
      from !== '' &&
      isHeld(from.includes('/node_modules/') ? from.slice(0, from.lastIndexOf('/node_modules/')) : '', name)
    );
  };
  return Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !isHeld(path, name))
      .map((name) => `${path}: ${name}`),
  );
}

test.each(['package-lock.json', 'test/engines/package-lock.json'])(
  '%s holds the packages of every platform',
  (lock) => {
    expect(missingIn(lock)).toEqual([]);
  },
);

/** Runs `npm run cluster` on a machine without engines, with an apt-get that records its arguments and fails. */
function clusterWithoutEngines(...flags: string[]): { status: number | null; stderr: string; asked: string } {
  symlinkSync('/bin/sh', join(folder, 'sh'));
  writeFileSync(join(folder, 'apt-get'), `#!/bin/sh\necho "$@" >> ${folder}/asked\nexit 100\n`, { mode: 0o755 });
  const { status, stderr } = spawnSync(process.execPath, ['scripts/cluster.mjs', ...flags], {
    ...{ cwd: root, encoding: 'utf8', timeout: 60_000, stdio: ['ignore', 'pipe', 'pipe'] },
    env: { ...process.env, NODE_OPTIONS: '', PATH: folder },
  });
  const asked = existsSync(join(folder, 'asked')) ? readFileSync(join(folder, 'asked'), 'utf8') : '';
  return { status, stderr, asked };
}

test('npm run cluster without its engines names the flag that brings them', () => {
  const { status, stderr, asked } = clusterWithoutEngines();
  expect(stderr).toMatch(
    /^Missing for a cluster: .*redis-server.*\. `npm run cluster -- --install` installs them on Debian\.\n$/,
  );
  expect([status, asked]).toEqual([1, '']);
});

test('npm run cluster -- --install asks apt-get for what is missing, and says what stays missing', () => {
  const { status, stderr, asked } = clusterWithoutEngines('--install');
  if (process.getuid?.() === 0) expect(asked).toMatch(/^install .*redis-server default-jre-headless/);
  expect(stderr).toContain('Not installed: redis-server, default-jre-headless');
  expect(stderr).toMatch(/Still missing for a cluster: .*redis-server/);
  expect(status).toBe(1);
});
