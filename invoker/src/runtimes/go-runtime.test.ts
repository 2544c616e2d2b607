import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { until } from '@gpuwhisk/common/testing/until';
import { GoPackages } from './go-runtime.js';

const guest = fileURLToPath(new URL('../../../runtimes/go', import.meta.url));

let folder: string;
let packages: GoPackages;

/** A toolchain whose `go` is this script; `$runs` is a file for the script's notes. */
function toolchain(script: string): void {
  const go = join(folder, 'go', 'bin', 'go');
  mkdirSync(join(folder, 'go', 'bin'), { recursive: true });
  writeFileSync(go, `#!/bin/sh\nruns=${join(folder, 'runs')}\n${script}\n`);
  chmodSync(go, 0o755);
  packages = new GoPackages(join(folder, 'data'), guest, { root: join(folder, 'go'), version: '1.22.3' });
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-go-'));
});
afterEach(async () => {
  await packages.close();
  rmSync(folder, { recursive: true, force: true });
});

const compiles =
  '[ -w "$GOTMPDIR" ] || exit 1\necho "nice $(nice) processors ${GOMAXPROCS:-all}" >> $runs\nmkdir -p $GOCACHE && touch $GOCACHE/one';
const runs = (): string[] =>
  existsSync(join(folder, 'runs')) ? readFileSync(join(folder, 'runs'), 'utf8').trim().split('\n') : [];
const made = (): string[] => readdirSync(join(folder, 'data'));
const fast = `nice ${execFileSync('nice', { encoding: 'utf8' }).trim()} processors all`;

test('are compiled ahead at the lowest priority on one processor, once', async () => {
  toolchain(`sleep 0.2\n${compiles}`);
  expect(await packages.prebuild()).toBe(true);
  expect(runs()).toEqual(['nice 19 processors 1']);
  expect(readdirSync(join(folder, 'data', made()[0] ?? ''))).toEqual(['cache']);
  expect(await packages.prebuild()).toBe(false);
  expect(await packages.ready()).toBe(join(folder, 'data', made()[0] ?? ''));
  expect(runs()).toHaveLength(1);
  expect(made()).toEqual([expect.stringMatching(/^go-1\.22\.3-[0-9a-f]{12}$/)]);
});

test('are compiled at full speed where they are needed at once', async () => {
  toolchain(compiles);
  const folders = await Promise.all([packages.ready(), packages.ready()]);
  expect(runs()).toEqual([fast]);
  expect(new Set(folders)).toEqual(new Set([join(folder, 'data', made()[0] ?? '')]));
});

test('are finished at full speed from what the background has begun', async () => {
  toolchain(`${compiles}\n[ -e $GOCACHE/begun ] && exit\ntouch $GOCACHE/begun\nsleep 60`);
  const ahead = packages.prebuild();
  await until(
    () => runs().length > 0 && made().some((name) => existsSync(join(folder, 'data', name, 'cache', 'begun'))),
  );
  const ready = await packages.ready();
  expect(await ahead).toBe(true);
  expect(runs()[1]).toBe(fast);
  expect(readdirSync(join(ready, 'cache')).sort()).toEqual(['begun', 'one']);
  expect(made()).toHaveLength(1);
});

test('are given up when the platform stops, with all that was started', async () => {
  toolchain('(sleep 4343; true) &\necho $! > $runs\nwait');
  const ahead = packages.prebuild();
  await until(() => runs().length > 0);
  await packages.close();
  expect(await ahead).toBe(false);
  expect(made()).toEqual([]);
  await until(() => !execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).includes('sleep 4343'));
});

test('that cannot be compiled say why, and are tried again', async () => {
  toolchain('echo "prime.go:4: no space left on device" >&2\nexit 1');
  const error = 'Go could not be prepared: prime.go:4: no space left on device';
  await expect(packages.prebuild()).rejects.toThrow(error);
  await expect(packages.ready()).rejects.toThrow(error);
  expect(made()).toEqual([]);
});
