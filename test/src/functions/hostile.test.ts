// A hostile function that attacks the machine, the platform, and other users' functions.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getPriority, networkInterfaces } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JsonValue } from '@gpuwhisk/common/json';
import { networkLack } from '../support/machine.js';
import { alive, descendants, remainingCgroups } from '../support/process-traces.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const suite = networkLack === undefined ? describe : describe.skip;
const repository = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');
/** Whether the clone has fetched the Node.js that functions run by. */
const isOwnNode = process.execPath.startsWith(`${repository}/build/`);
const secret = 'the secret of the host';

/** Runs the body of an async function that its caller sends. */
const anything = `async function main({ script }) {
  const fs = require('fs');
  const { spawnSync } = require('child_process');
  const shell = (command) => spawnSync('/bin/sh', ['-c', command], { encoding: 'utf8', timeout: 5000 });
  try {
    const run = new Function('fs', 'shell', 'require', 'return (async () => {' + script + '})()');
    return { value: (await run(fs, shell, require)) ?? null };
  } catch (error) {
    return { thrown: error.code ?? String(error) };
  }
}`;

suite(`a hostile function${networkLack ? ` (skipped: ${networkLack})` : ''}`, () => {
  let platform: RunningPlatform;
  let service: Server;
  let secretFile: string;

  beforeAll(async () => {
    platform = await startPlatform({ flags: ['--set', 'allowWeakIsolation=false'], leadsSession: true });
    for (const name of ['hostile', 'victim']) await platform.api.putAction(name, anything, { limits: { memory: 256 } });
    secretFile = join(platform.dataDir, 'secret');
    writeFileSync(secretFile, secret, { mode: 0o644 });
    service = createServer((_, response) => response.end(secret));
    await new Promise<void>((resolve) => service.listen(0, resolve));
  });
  afterAll(async () => {
    service.close();
    await platform.stop();
  });

  /** Runs a script in one of the actions and returns its result. */
  async function inside(action: 'hostile' | 'victim', script: string): Promise<JsonValue> {
    const { status, body } = await platform.api.invokeForResult(action, { script });
    expect(status).toBe(200);
    return 'thrown' in body ? { thrown: body.thrown ?? null } : (body.value ?? null);
  }
  const hostile = (script: string): Promise<JsonValue> => inside('hostile', script);

  test("reads neither the platform's data, the repository nor what else is the host's", async () => {
    const paths = [
      platform.dataDir,
      secretFile,
      join(platform.dataDir, 'store'),
      dirname(platform.dataDir),
      repository,
      '/root',
      '/home',
      '/etc/shadow',
      '/var/log',
      '/boot',
    ];
    for (const path of paths) {
      const seen = await hostile(`try { return fs.readdirSync(${JSON.stringify(path)}); } catch (error) {
        if (error.code !== 'ENOTDIR') throw error; return fs.readFileSync(${JSON.stringify(path)}, 'utf8'); }`);
      expect({ path, seen }).toEqual({ path, seen: { thrown: expect.stringMatching(/^(ENOENT|EACCES)$/) } });
    }
    // The runtimes and the library and addon that they use are bound at a place of their own; nothing else is.
    expect(await hostile(`return shell('ls /gpuwhisk /gpuwhisk/node_modules').stdout.split(/\\s+/).sort()`)).toEqual([
      ...['', '/gpuwhisk/node_modules:', '/gpuwhisk:', 'adm-zip'],
      ...[...(isOwnNode ? ['build'] : []), 'native', 'node_modules', 'runtimes'],
    ]);
    const programs = isOwnNode ? [process.execPath.replace(repository, '/gpuwhisk')] : [];
    expect(await hostile(`return shell('find /gpuwhisk/build -type f').stdout.split(/\\s+/)`)).toEqual([
      ...programs,
      '',
    ]);
    expect(await hostile(`return shell('find /gpuwhisk/native').stdout.split(/\\s+/).sort()`)).toEqual([
      '',
      '/gpuwhisk/native',
      '/gpuwhisk/native/build',
      '/gpuwhisk/native/build/channel.node',
    ]);
    const folders = '/action /dev/shm /etc /home /media /mnt /opt /root /run /srv /tmp /var';
    const found = await hostile(`return shell('grep -rls "${secret}" ${folders}').stdout;`);
    expect(found).toBe('');
  });

  test("sees neither another function's files nor its processes", async () => {
    const plant = `for (const folder of ['/tmp', '/action', '/dev/shm']) fs.writeFileSync(folder + '/mine', 'private');
      process.env.MINE = 'private';
      require('child_process').spawn('/bin/sleep', ['4321'], { stdio: 'ignore' });
      return process.pid;`;
    const victimPid = await inside('victim', plant);
    expect(await hostile(`return ['/tmp', '/action', '/dev/shm'].flatMap((folder) => fs.readdirSync(folder))`)).toEqual(
      [],
    );
    const commands = await hostile(`return fs.readdirSync('/proc').filter((name) => /^\\d+$/.test(name))
      .map((pid) => { try { return fs.readFileSync('/proc/' + pid + '/cmdline', 'utf8'); } catch { return ''; } }).join();`);
    expect(commands).not.toContain('4321');
    expect(commands).not.toContain('serve.cjs');
    expect(await hostile(`return shell('ps -e 2>/dev/null | grep -c sleep').stdout.trim()`)).toMatch(/^0?$/);
    expect(await hostile(`return process.kill(${descendants(platform.pid)[0]?.pid}, 0)`)).toEqual({ thrown: 'ESRCH' });
    expect(await hostile(`return process.kill(${platform.pid}, 9)`)).toEqual({ thrown: 'ESRCH' });
    expect(await inside('victim', 'return [process.pid, process.env.MINE]')).toEqual([victimPid, 'private']);
  });

  test("reaches neither the host's loopback nor its services at other addresses", async () => {
    const ports = [(service.address() as AddressInfo).port, Number(new URL(platform.url).port)];
    const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
    const gateway = await hostile(
      `return shell("awk '$2 == \\"00000000\\" { print $3 }' /proc/net/route").stdout.trim();`,
    );
    const gatewayAddress = /^[0-9A-F]{8}$/.test(String(gateway))
      ? [...Buffer.from(String(gateway), 'hex')].reverse().join('.')
      : '127.0.0.2';
    const hosts = [...new Set(['127.0.0.1', '::1', '0.0.0.0', gatewayAddress, ...own.map(({ address }) => address)])];
    const targets = hosts.flatMap((host) => ports.map((port) => ({ host, port })));
    const outcomes = await hostile(`const { connect } = require('net');
      return Promise.all(${JSON.stringify(targets)}.map(({ host, port }) => new Promise((resolve) => {
        const socket = connect({ host, port });
        socket.setTimeout(2000, () => { socket.destroy(); resolve([host, 'silence']); });
        socket.on('connect', () => { socket.destroy(); resolve([host, 'connected']); });
        socket.on('error', (error) => resolve([host, error.code])); })));`);
    expect(outcomes).toHaveLength(targets.length);
    expect((outcomes as string[][]).filter(([, outcome]) => outcome === 'connected')).toEqual([]);
  });

  test('writes nowhere outside its own folders', async () => {
    for (const folder of [
      '/',
      '/usr/bin',
      '/etc',
      '/dev',
      '/opt',
      '/proc/sys/kernel',
      '/sys/fs/cgroup',
      '/var',
      '/run',
    ]) {
      const outcome = await hostile(`fs.writeFileSync('${folder}/planted', 'x'); return 'written';`);
      expect({ folder, outcome }).toEqual({
        folder,
        outcome: { thrown: expect.stringMatching(/^(EROFS|EACCES|ENOENT|EPERM)$/) },
      });
    }
    expect(await hostile(`fs.appendFileSync(process.execPath, 'x')`)).toEqual({ thrown: expect.stringMatching(/^E/) });
    expect(
      await hostile(`fs.symlinkSync(${JSON.stringify(secretFile)}, '/tmp/link'); return fs.readFileSync('/tmp/link')`),
    ).toEqual({
      thrown: 'ENOENT',
    });
    expect(await hostile(`fs.unlinkSync('/tmp/link'); return fs.readdirSync('/tmp')`)).toEqual([]);
  });

  test('has the usual priority on the processors; the platform, which leads its session, goes before it', async () => {
    expect(getPriority(platform.pid)).toBeLessThan(0);
    expect(await hostile(`return require('node:os').getPriority()`)).toBe(0);
    expect(await hostile(`require('node:os').setPriority(-1)`)).toEqual({ thrown: 'ERR_SYSTEM_ERROR' });
  });

  test.each([
    ['becomes root', 'su -c true; sudo true; [ "$(id -u)" = 0 ]'],
    ['mounts', 'mount -t tmpfs none /tmp'],
    ['mounts in a namespace of its own', 'unshare --user --map-root-user --mount mount -t tmpfs none /tmp'],
    ['mounts /proc anew', 'unshare --pid --fork --mount-proc true'],
    ['enters the namespaces of init', 'nsenter -t 1 -a true'],
    ['makes devices', 'mknod /tmp/disk b 8 0'],
    ['reads the memory of the kernel', 'head -c1 /dev/mem || head -c1 /dev/kmem || head -c1 /proc/kcore'],
    ['changes the kernel', 'echo 1 > /proc/sys/kernel/sysrq || echo c > /proc/sysrq-trigger'],
    ['leaves its control group', 'echo 0 > /sys/fs/cgroup/cgroup.procs || echo 0 > /sys/fs/cgroup/memory/tasks'],
    ['raises its limits', 'ulimit -n 100000'],
    ['stops the container’s init', 'kill -STOP 1 && grep -q "State:.T" /proc/1/status'],
    ['reads the memory of init', 'head -c1 /proc/1/mem'],
    ['reads the environment of init', 'grep -q . /proc/1/environ'],
  ])('in vain: %s', async (_, command) => {
    expect(await hostile(`return shell(${JSON.stringify(command)}).status`)).not.toBe(0);
    expect(await inside('victim', 'return "alive"')).toBe('alive');
  });

  test('forks to the limit while others keep working, and all of it ends with it', async () => {
    const bomb = `async function main() {
      require('child_process').spawn('/bin/sh', ['-c', 'while :; do sleep 600 & done'], { stdio: 'ignore' });
      return new Promise(() => {});
    }`;
    await platform.api.putAction('bomb', bomb, { limits: { timeout: 4000, memory: 512 } });
    const exploded = platform.api.run('bomb');
    const mine = () => descendants(platform.pid).filter(({ command }) => command.startsWith('sleep 600'));
    await until('it has forked', () => mine().length > 100);
    const traces = mine();
    for (let i = 0; i < 5; i++) expect(await inside('victim', 'return "alive"')).toBe('alive');
    const { status, record } = await exploded;
    expect({ status, error: record.response.result.error }).toEqual({
      status: 502,
      error: expect.stringMatching(
        /^The action (exceeded its time limits of 4000 milliseconds|exhausted its memory and was aborted)\.$/,
      ),
    });
    await until('its processes are gone', () => mine().length + alive(traces).length === 0);
    await until('its control groups are gone', () => remainingCgroups(traces).length === 0);
    expect(traces.flatMap(({ cgroups }) => cgroups)).not.toEqual([]);
    mkdirSync(join(platform.dataDir, 'still-writable'));
  });

  test('has not harmed the platform', async () => {
    expect(await inside('victim', 'return "alive"')).toBe('alive');
    expect(platform.output()).not.toMatch(/"level":(50|60)/);
  });
});
