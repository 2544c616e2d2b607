// An upgrade by the packages' scripts and dpkg on a disk that gets full: the release before stays, and a line says what to do.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ApiClient } from '../support/api-client.js';
import { canMountExt4, mountSmallExt4, unmountSmall } from '../support/small-disk.js';

const clone = fileURLToPath(new URL('../../..', import.meta.url));
const scripts = join(clone, 'scripts', 'release', 'files');
const base = 'usr/lib/gpuwhisk';
const diskMiB = 256;
const releaseMiB = 16;
const commandMs = 60_000;
const testMs = 180_000;

interface Told {
  status: number | null;
  stdout: string;
  stderr: string;
}

function run(command: string, ...words: string[]): Told {
  const { status, stdout, stderr } = spawnSync(command, words, { encoding: 'utf8', timeout: commandMs });
  return { status, stdout, stderr };
}

/** The command of a release: without words it tells its version. */
const serverOf = (version: string): string => `#!/bin/sh
':' //; exec '${process.execPath}' "$0" "$@"
if (process.argv.length === 2) console.log('${version}');
else {
  process.argv.splice(2, 1);
  console.error('${version} is started');
  require('${join(clone, 'scripts', 'serve.cjs')}');
}
`;

/** Does with the service what systemd does with one of Type=notify: ends it, starts it, and waits until it serves or ends. */
const systemctl = `#!/bin/sh
case "$1" in restart | try-restart) ;; *) exit 0 ;; esac
[ ! -f /debs/pid ] || { kill "$(cat /debs/pid)"; while kill -0 "$(cat /debs/pid)" 2> /dev/null; do sleep 0.1; done; }
[ ! -x /debs/before-start ] || /debs/before-start
: > /debs/journal
NODE_OPTIONS= CACHE_DIRECTORY=/debs/cache GPUWHISK_PREPARE_RUNTIMES=false \\
  setsid $(sed -n 's/^ExecStart=//p' /debs/gpuwhisk.service) >> /debs/journal 2>&1 < /dev/null &
echo $! > /debs/pid
while kill -0 $! 2> /dev/null; do
  ! grep -q 'Ctrl-C stops' /debs/journal || exit 0
  sleep 0.1
done
rm /debs/pid
exit 1
`;

const isPossible = canMountExt4 && run('dpkg-deb', '--version').status === 0;

(isPossible ? describe : describe.skip)('an upgrade on a full disk', () => {
  let folder: string;
  const bound: string[] = [];
  const at = (...path: string[]): string => join(folder, ...path);
  const inRoot = (...path: string[]): string => at('root', ...path);

  /** Packs a release of files without meaning with the server of this clone; `sizeMiB` is what the package tells of itself. */
  function pack(version: string, sizeMiB = releaseMiB): void {
    const tree = at(`tree-${version}`);
    const release = join(tree, base, 'release');
    mkdirSync(join(tree, 'DEBIAN'), { recursive: true });
    mkdirSync(join(release, 'bin'), { recursive: true });
    writeFileSync(join(release, 'build-id'), `${version}\n`);
    mkdirSync(join(release, 'node', 'bin'), { recursive: true });
    symlinkSync(process.execPath, join(release, 'node', 'bin', 'node'));
    writeFileSync(join(release, 'bin', 'gpuwhisk'), serverOf(version));
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
  const dpkg = (...words: string[]): Told => {
    const path = `PATH=/debs/bin:/usr/sbin:/usr/bin:/sbin:/bin`;
    return run('chroot', inRoot(), 'env', path, 'dpkg', '--admindir=/debs/packages', ...words);
  };

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

  const bind = (source: string, target: string): void => {
    mkdirSync(target, { recursive: true });
    expect(run('mount', '--bind', source, target)).toMatchObject({ status: 0 });
    bound.push(target);
  };

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-full-disk-'));
    expect(mountSmallExt4(at('disk'), at('image'), diskMiB)).toBe(true);
    for (const name of ['upper', 'work']) mkdirSync(at('disk', name));
    mkdirSync(inRoot());
    const layers = `lowerdir=/,upperdir=${at('disk', 'upper')},workdir=${at('disk', 'work')}`;
    expect(run('mount', '-t', 'overlay', 'overlay', '-o', layers, inRoot())).toMatchObject({ status: 0 });
    for (const one of [at('debs'), inRoot('debs')]) mkdirSync(one);
    bind(at('debs'), inRoot('debs'));
    // They may be on other disks than the system is.
    for (const path of [clone, dirname(process.execPath)]) bind(path, inRoot(path));
    for (const path of ['proc', 'dev', 'sys']) expect(run('mount', '--rbind', `/${path}`, inRoot(path)).status).toBe(0);
    for (const path of ['proc', 'dev', 'sys']) expect(run('mount', '--make-rslave', inRoot(path)).status).toBe(0);
    mkdirSync(inRoot('etc', 'gpuwhisk'), { recursive: true });
    const settings = { port: 0, gatewayPort: 0, consolePort: 0, fetchRuntimes: false, stemCells: false };
    writeFileSync(inRoot('etc', 'gpuwhisk', 'gpuwhisk.json'), JSON.stringify(settings));
    for (const name of ['info', 'updates', 'triggers']) mkdirSync(at('debs', 'packages', name), { recursive: true });
    for (const name of ['status', 'available']) writeFileSync(at('debs', 'packages', name), '');
  });
  afterAll(() => {
    stop();
    for (const path of ['proc', 'dev', 'sys']) unmountSmall(inRoot(path));
    for (const path of bound.reverse()) unmountSmall(path);
    unmountSmall(inRoot());
    unmountSmall(at('disk'));
    rmSync(folder, { recursive: true, force: true });
  });

  const pid = (): number | undefined =>
    existsSync(at('debs', 'pid')) ? Number(readFileSync(at('debs', 'pid'))) : undefined;
  /** Ends the server that a test has left. */
  const stop = (): void => {
    const left = pid();
    if (left !== undefined) process.kill(left, 'SIGKILL');
  };

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

  test(
    'under a running server: it is left alone, or serves again once there is space, with its data',
    async () => {
      mkdirSync(inRoot('run', 'systemd', 'system'), { recursive: true });
      mkdirSync(at('debs', 'bin'));
      mkdirSync(at('debs', 'cache'), { mode: 0o700 });
      copyFileSync(join(scripts, 'gpuwhisk.service'), at('debs', 'gpuwhisk.service'));
      const programs = { systemctl, journalctl: '#!/bin/sh\ncat /debs/journal\n' };
      for (const [name, text] of Object.entries(programs))
        writeFileSync(at('debs', 'bin', name), text, { mode: 0o755 });
      const service = (): Told => run('chroot', inRoot(), '/debs/bin/systemctl', 'restart', 'gpuwhisk.service');
      const journal = (): string => readFileSync(at('debs', 'journal'), 'utf8');
      pack('3');
      pack('4');
      expect(dpkg('--install', '/debs/3.deb')).toMatchObject({ status: 0 });
      const first = pid();
      const api = (): ApiClient => {
        const [, url = '', auth = ''] = /--apihost (\S+) --auth (\S+)/.exec(journal()) ?? [];
        return new ApiClient(url, auth);
      };
      await api().putAction('kept', 'exports.main = () => ({})');
      const isKept = async (): Promise<void> => expect((await api().request('GET', '_/actions/kept')).status).toBe(200);

      expect(dpkg('--unpack', '/debs/4.deb')).toMatchObject({ status: 0 });
      fill(50);
      const refused = dpkg('--configure', 'gpuwhisk');
      expect(refused.stderr).toMatch(
        /^gpuwhisk: \/usr\/lib\/gpuwhisk has \d+ MB free, and the start of a release takes 100 MB: free \d+ MB there, and run 'dpkg --configure gpuwhisk', or reinstall the rpm\. The release before, if one ran, still runs\.$/m,
      );
      expect([current(), pid()]).toEqual(['3', first]);
      await isKept();

      empty();
      // The disk gets full between the end of the old server and the start of the new one.
      const filling = 'for size in 64k 1k; do dd if=/dev/zero of=/filler-$size bs=$size 2> /dev/null; done';
      writeFileSync(at('debs', 'before-start'), `#!/bin/sh\n${filling}\n`, { mode: 0o755 });
      const failed = dpkg('--configure', 'gpuwhisk');
      expect(failed.status).not.toBe(0);
      expect(failed.stderr).toContain(
        'The disk of the data folder /var/lib/gpuwhisk is full: free 100 MB there, and start again.',
      );
      expect(failed.stderr).toMatch(
        /^gpuwhisk: Neither the release nor the one before starts; their last lines are above\. The one before is tried every 5 s; once it serves, run 'dpkg --configure gpuwhisk', or reinstall the rpm\.$/m,
      );
      expect([current(), pid()]).toEqual(['3', undefined]);

      rmSync(at('debs', 'before-start'));
      for (const size of ['64k', '1k']) rmSync(inRoot(`filler-${size}`));
      expect(service()).toMatchObject({ status: 0 });
      expect(journal()).toContain('3 is started');
      await isKept();
      expect(dpkg('--configure', 'gpuwhisk')).toMatchObject({ status: 0 });
      expect(journal()).toContain('4 is started');
      await isKept();
    },
    testMs,
  );
});
