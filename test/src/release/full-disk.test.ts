// An upgrade by the packages' scripts and dpkg on a disk that gets full: the release before stays, and a line says what to do.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { canMountExt4, mountSmallExt4, unmountSmall } from '../support/small-disk.js';

const scripts = fileURLToPath(new URL('../../../scripts/release/files', import.meta.url));
const base = 'usr/lib/gpuwhisk';
const diskMiB = 64;
const releaseMiB = 16;
const commandMs = 60_000;

interface Told {
  status: number | null;
  stdout: string;
  stderr: string;
}

function run(command: string, ...words: string[]): Told {
  const { status, stdout, stderr } = spawnSync(command, words, { encoding: 'utf8', timeout: commandMs });
  return { status, stdout, stderr };
}

const isPossible = canMountExt4 && run('dpkg-deb', '--version').status === 0;

(isPossible ? describe : describe.skip)('an upgrade on a full disk', () => {
  let folder: string;
  const at = (...path: string[]): string => join(folder, ...path);
  const inRoot = (...path: string[]): string => at('root', ...path);

  /** Packs a release of files without meaning and a server that agrees to any data; `sizeMiB` is what the package tells of itself. */
  function pack(version: string, sizeMiB = releaseMiB): void {
    const tree = at(`tree-${version}`);
    const release = join(tree, base, 'release');
    mkdirSync(join(tree, 'DEBIAN'), { recursive: true });
    mkdirSync(join(release, 'bin'), { recursive: true });
    writeFileSync(join(release, 'build-id'), `${version}\n`);
    writeFileSync(join(release, 'bin', 'gpuwhisk'), `#!/bin/sh\necho ${version}\n`);
    chmodSync(join(release, 'bin', 'gpuwhisk'), 0o755);
    for (let part = 0; part < releaseMiB; part += 1) {
      mkdirSync(join(release, `part${part}`));
      writeFileSync(join(release, `part${part}`, 'bytes'), randomBytes(1024 * 1024));
    }
    const about = {
      Package: 'gpuwhisk',
      Version: version,
      Architecture: 'all',
      Maintainer: 'test <test@gpuwhisk.invalid>',
    };
    const fields = { ...about, 'Installed-Size': sizeMiB * 1024, Description: 'test' };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
    writeFileSync(join(tree, 'DEBIAN', 'control'), lines.join(''));
    const files = { preinst: 'before-install.sh', postinst: 'after-install.sh', prerm: 'before-removal.sh' };
    for (const [name, source] of Object.entries(files)) {
      copyFileSync(join(scripts, source), join(tree, 'DEBIAN', name));
      chmodSync(join(tree, 'DEBIAN', name), 0o755);
    }
    const packed = run('dpkg-deb', '-Znone', '--root-owner-group', '--build', tree, at('debs', `${version}.deb`));
    expect(packed).toMatchObject({ status: 0 });
    rmSync(tree, { recursive: true });
  }

  /** Calls dpkg in the root; its own lists are on another disk. */
  const dpkg = (...words: string[]): Told => run('chroot', inRoot(), 'dpkg', '--admindir=/debs/packages', ...words);

  /** Leaves so much free. */
  function fill(leftMiB: number): void {
    const { bavail, bsize } = statfsSync(at('disk'));
    const bytes = bavail * bsize - leftMiB * 1024 * 1024;
    // Also the blocks that one large file leaves.
    run('dd', 'if=/dev/zero', `of=${at('disk', 'filler')}`, 'bs=64k', `count=${Math.floor(bytes / 65_536)}`);
    if (leftMiB === 0) run('dd', 'if=/dev/zero', `of=${at('disk', 'filler2')}`, 'bs=1k');
  }
  const empty = (): void => {
    for (const name of ['filler', 'filler2']) rmSync(at('disk', name), { force: true });
  };

  const installed = (): string => dpkg('--status', 'gpuwhisk').stdout;
  /** The version that the service would start. */
  const current = (): string => run('chroot', inRoot(), `/${base}/current/bin/gpuwhisk`).stdout.trim();

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-full-disk-'));
    expect(mountSmallExt4(at('disk'), at('image'), diskMiB)).toBe(true);
    for (const name of ['upper', 'work']) mkdirSync(at('disk', name));
    mkdirSync(inRoot());
    const layers = `lowerdir=/,upperdir=${at('disk', 'upper')},workdir=${at('disk', 'work')}`;
    expect(run('mount', '-t', 'overlay', 'overlay', '-o', layers, inRoot())).toMatchObject({ status: 0 });
    for (const one of [at('debs'), inRoot('debs')]) mkdirSync(one);
    expect(run('mount', '--bind', at('debs'), inRoot('debs'))).toMatchObject({ status: 0 });
    for (const name of ['info', 'updates', 'triggers']) mkdirSync(at('debs', 'packages', name), { recursive: true });
    for (const name of ['status', 'available']) writeFileSync(at('debs', 'packages', name), '');
  });
  afterAll(() => {
    unmountSmall(inRoot('debs'));
    unmountSmall(inRoot());
    unmountSmall(at('disk'));
    rmSync(folder, { recursive: true, force: true });
  });

  const isAsBefore = (): void =>
    expect([current(), installed()]).toEqual([
      '1',
      expect.stringMatching(/^Status: install ok installed$[^]*^Version: 1$/m),
    ]);

  test('is refused before it begins, in its middle, or before it is used; then it succeeds', () => {
    pack('1');
    pack('2');
    pack('2-small', 1);
    expect(dpkg('--install', '/debs/1.deb')).toMatchObject({ status: 0 });
    expect(current()).toBe('1');

    fill(8);
    const refused = dpkg('--install', '/debs/2.deb');
    expect(refused.status).not.toBe(0);
    expect(refused.stderr).toMatch(
      /^gpuwhisk: \/usr\/lib\/gpuwhisk has \d+ MB free, and this release takes 20 MB: free \d+ MB there, and install it again\. The release before, if one ran, still runs\.$/m,
    );
    isAsBefore();

    const stopped = dpkg('--install', '/debs/2-small.deb');
    expect(stopped.stderr).toMatch(/No space left on device/);
    isAsBefore();

    empty();
    expect(dpkg('--unpack', '/debs/2.deb')).toMatchObject({ status: 0 });
    fill(0);
    const unused = dpkg('--configure', 'gpuwhisk');
    expect(unused.stderr).toMatch(
      /^gpuwhisk: The release could not be laid out in \/usr\/lib\/gpuwhisk\/run\/2: free 100 MB there, and run 'dpkg --configure gpuwhisk', or reinstall the rpm\. The release before still runs\.$/m,
    );
    expect(current()).toBe('1');

    empty();
    expect(dpkg('--configure', 'gpuwhisk')).toMatchObject({ status: 0 });
    expect(current()).toBe('2');
  });
});
