import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Container } from '@gpuwhisk/invoker/containers/container-factory';
import { spec } from './container-calls.js';
import { initialized, run } from './containers/cases.js';
import { descendants } from '../support/process-traces.js';
import { hasLauncher, isRoot, launcherPath, openMsContainerFactory, openProcessFactory } from './process-harness.js';
import type { ProcessHarness } from './process-harness.js';

const reason = !hasLauncher ? 'the sandbox launcher is not built' : !isRoot ? 'full isolation needs root' : undefined;
const suite = reason === undefined ? describe : describe.skip;

/**
 * Runs the script as an async function in the container. Returns its result, or `{thrown}` with the code of its error.
 */
async function inside(container: Container, script: string): Promise<JsonValue> {
  const outcome = await run(container, { do: 'script', script }).outcome;
  if (outcome.type !== 'result' || Array.isArray(outcome.result)) throw new Error(JSON.stringify(outcome));
  const { value, thrown } = outcome.result;
  return thrown === undefined ? (value ?? null) : { thrown };
}

const sorts = { 'process container': openProcessFactory, 'pair of an MSContainer': openMsContainerFactory };

suite.each(Object.entries(sorts))(
  `a hostile function in a %s${reason ? ` (skipped: ${reason})` : ''}`,
  (sort, open) => {
    let harness: ProcessHarness;
    let hostile: Container;
    let victim: Container;
    let service: Server;

    beforeAll(async () => {
      harness = await open();
      expect(harness.report).toEqual({ weaknesses: [], notes: [] });
      writeFileSync(join(harness.dataDir, 'secret'), 'secret');
      [hostile, victim] = await Promise.all([initialized(harness.factory), initialized(harness.factory)]);
      service = createServer((_, response) => response.end('secret'));
      await new Promise<void>((resolve) => service.listen(0, '0.0.0.0', resolve));
    });
    afterAll(async () => {
      service.close();
      await harness.close();
    });

    const fs = `const fs = require('node:fs');`;

    test("cannot read the platform's data folder, nor what lies around it", async () => {
      for (const path of [
        harness.dataDir,
        join(harness.dataDir, 'secret'),
        process.cwd(),
        '/root',
        '/home',
        '/etc/shadow',
      ]) {
        expect(await inside(hostile, `${fs} return fs.statSync(${JSON.stringify(path)}).mode;`)).toEqual({
          thrown: 'ENOENT',
        });
      }
    });

    test("sees neither another sandbox's files nor its processes", async () => {
      await inside(
        victim,
        `${fs} fs.writeFileSync('/tmp/mine', 'x'); fs.writeFileSync('/action/mine', 'x'); return 0;`,
      );
      await inside(victim, `spawn('/bin/sleep', ['77']); return 0;`);
      expect(await inside(hostile, `${fs} return [...fs.readdirSync('/tmp'), ...fs.readdirSync('/action')];`)).toEqual(
        [],
      );
      const commands = await inside(
        hostile,
        `${fs} return fs.readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name))
        .map((pid) => fs.readFileSync('/proc/' + pid + '/cmdline', 'utf8'));`,
      );
      // In a pair, the first process is hidden, like all processes that the function may not trace.
      expect(commands).toHaveLength(sort === 'process container' ? 2 : 1);
      expect(JSON.stringify(commands)).not.toContain('sleep');
    });

    test("cannot reach the host's loopback, nor any other address of it", async () => {
      const { port } = service.address() as AddressInfo;
      const connect = (host: string): string => `return new Promise((resolve) => {
      const socket = require('node:net').connect(${port}, ${JSON.stringify(host)});
      socket.setTimeout(500, () => { socket.destroy(); resolve('silent'); });
      socket.on('connect', () => resolve('connected'));
      socket.on('error', (error) => resolve(error.code)); });`;
      expect(await inside(hostile, connect('127.0.0.1'))).toBe('ECONNREFUSED');
      expect(['ENETUNREACH', 'EHOSTUNREACH']).toContain(await inside(hostile, connect('169.254.169.254')));
    });

    test('writes nowhere but in /action, /tmp and /dev/shm', async () => {
      for (const folder of ['/', '/usr', '/etc', '/opt', '/dev', '/proc/sys/kernel', '/sys', '/var']) {
        const outcome = await inside(hostile, `${fs} fs.writeFileSync('${folder}/x', 'x'); return 'written';`);
        expect(['EROFS', 'EACCES', 'ENOENT']).toContain((outcome as { thrown: string }).thrown);
      }
      for (const folder of ['/action', '/tmp', '/dev/shm']) {
        expect(await inside(hostile, `${fs} fs.writeFileSync('${folder}/x', 'x'); return 'written';`)).toBe('written');
      }
      expect(await inside(hostile, `${fs} fs.writeFileSync('/proc/sys/kernel/hostname', 'x'); return 0;`)).toEqual({
        thrown: expect.stringMatching(/EROFS|EACCES/),
      });
    });

    test.each([
      ['/tmp', 128],
      ['/dev/shm', 128],
      ['/action', 192],
    ])('fills %s only up to its part of the memory, with files or with names', async (folder, boundMiB) => {
      const script = `${fs} const block = Buffer.alloc(1 << 20, 1); const file = fs.openSync('${folder}/full', 'w');
      let written = 0; try { for (;;) written += fs.writeSync(file, block); } catch (error) {
        fs.closeSync(file); fs.unlinkSync('${folder}/full'); return [error.code, written >> 20]; }`;
      const [code, writtenMiB] = (await inside(hostile, script)) as [string, number];
      expect(code).toBe('ENOSPC');
      expect(writtenMiB).toBeGreaterThan(boundMiB - 8);
      expect(writtenMiB).toBeLessThanOrEqual(boundMiB);
      // Empty files take kernel memory.
      const names = `${fs} fs.mkdirSync('${folder}/many'); let made = 0;
      try { for (;; made++) fs.closeSync(fs.openSync('${folder}/many/' + made, 'w')); } catch (error) {
        fs.rmSync('${folder}/many', { recursive: true }); return [error.code, made]; }`;
      const [why, made] = (await inside(hostile, names)) as [string, number];
      expect(why).toBe('ENOSPC');
      expect(made).toBeLessThanOrEqual(boundMiB * 256);
    });

    test('writes none of it to the disk of the host, and all of it counts as its memory', async () => {
      const container = await initialized(harness.factory);
      expect(readdirSync(join(harness.dataDir, 'sandboxes')).sort()).toEqual(['.etc', '.probe', '.root']);
      const script = `${fs} const block = Buffer.alloc(100 << 20, 1);
      for (const folder of ['/action', '/tmp', '/dev/shm']) fs.writeFileSync(folder + '/full', block); return 'written';`;
      const outcome = await run(container, { do: 'script', script }).outcome;
      expect(outcome).toEqual({ type: 'lost', oomKilled: true });
      await container.destroy();
    });

    test('has no privileges and can get none', async () => {
      const status = (await inside(hostile, `${fs} return fs.readFileSync('/proc/self/status', 'utf8');`)) as string;
      for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
        expect(status).toMatch(new RegExp(`^${set}:\\s+0+$`, 'm'));
      }
      expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
      expect(status).toMatch(/^Seccomp:\s+2$/m);
      expect(status).toMatch(/^Uid:\s+1000\s/m);
      const limits = (await inside(hostile, `${fs} return fs.readFileSync('/proc/self/limits', 'utf8');`)) as string;
      expect(limits).toMatch(/Max open files\s+1024\s+1024/);
      expect(limits).toMatch(/Max core file size\s+0\s+0/);
      expect(limits).toMatch(/Max file size\s+268435456\s+268435456/);
    });

    test.each([
      ['unshare', `unshare --user --mount true`],
      ['mount', `mount -t tmpfs none /tmp`],
      ['chroot', `chroot / true`],
      ['ptrace of init', `cat /proc/1/mem`],
      ["init's files", `ls /proc/1/fd`],
      ["init's environment", `cat /proc/1/environ`],
      ['kernel memory', `head -c1 /proc/kcore | grep .`],
      ['a device', `mknod /tmp/disk b 254 0`],
      ['the host name', `hostname x`],
      ['killing init', `kill -9 1; sleep 0.1; kill -0 1 || exit 1; exit 2`],
    ])('cannot: %s', async (_, command) => {
      const script = `return require('node:child_process').spawnSync('/bin/sh', ['-c', ${JSON.stringify(command)}]).status;`;
      expect(await inside(hostile, script)).not.toBe(0);
      expect(await inside(hostile, 'return "alive";')).toBe('alive');
    });

    test('starts with only its standard streams and its socket open', async () => {
      // Higher descriptors are the Node.js runtime's own, opened in the sandbox.
      const names = await inside(
        hostile,
        `${fs} return [0, 1, 2, 3].map((fd) => fs.readlinkSync('/proc/self/fd/' + fd).split(':')[0]);`,
      );
      expect(names).toEqual(['/null', 'pipe', 'pipe', 'socket']);
    });

    test('runs as a user that no other sandbox has', async () => {
      const map = `${fs} return fs.readFileSync('/proc/self/uid_map', 'utf8').trim().split(/\\s+/);`;
      const [mine, theirs] = (await Promise.all([inside(hostile, map), inside(victim, map)])) as string[][];
      expect(mine?.[0]).toBe('1000');
      expect(Number(mine?.[1])).toBeGreaterThan(1_879_048_191);
      expect(mine?.[1]).not.toBe(theirs?.[1]);
    });

    test('leaves nothing behind, however deep its folders are', async () => {
      const container = await initialized(harness.factory);
      const script = `const fs = require('node:fs'); process.chdir('/action');
      for (let i = 0; i < 1500; i++) { fs.mkdirSync('deeper'); process.chdir('deeper'); } return 0;`;
      expect(await inside(container, script)).toBe(0);
      await container.destroy();
      expect(readdirSync(join(harness.dataDir, 'sandboxes'))).not.toContain(container.id);
    });
  },
);

suite(`trials of the host${reason ? ` (skipped: ${reason})` : ''}`, () => {
  test('a trial that is slow is repeated, and no measure is dropped', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-slow-'));
    const slow = join(folder, 'sandbox');
    // Inside the sandbox, the launcher runs this script with --true as the program of the trial.
    const script = `[ "$1" = --true ] && exit 0
      mkdir ${folder}/once 2>/dev/null && exec sleep 60
      exec ${launcherPath} "$@"`;
    writeFileSync(slow, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const { report, close } = await openProcessFactory({ launcherPath: slow });
    try {
      expect(existsSync(join(folder, 'once'))).toBe(true);
      expect(report).toEqual({ weaknesses: [], notes: [] });
    } finally {
      await close();
      rmSync(folder, { recursive: true });
    }
  });
});

/** The container's processor weight, as a fraction of the kernel's default weight. */
function processorPart(container: Container): number {
  const { hostPid = 0 } = container;
  // The launcher stays outside.
  const folders = descendants(hostPid).flatMap(({ cgroups }) => cgroups);
  for (const [file, whole] of [
    ['cpu.weight', 100],
    ['cpu.shares', 1024],
  ] as const) {
    const path = folders.map((folder) => join(folder, file)).find((each) => existsSync(each));
    if (path !== undefined) return Number(readFileSync(path, 'utf8')) / whole;
  }
  throw new Error('the container is in no group for processors');
}

suite(`a container that is readied ahead${reason ? ` (skipped: ${reason})` : ''}`, () => {
  test.each(Object.entries(sorts))('gives way to others on the processors until it is ready: %s', async (_, open) => {
    const { factory, close } = await open();
    try {
      const container = await factory.prewarm(spec);
      expect(processorPart(container)).toBeCloseTo(1 / 8, 1);
      await container.giveWay(false);
      expect(processorPart(container)).toBe(1);
      await container.giveWay(true);
      expect(processorPart(container)).toBeCloseTo(1 / 8, 1);
    } finally {
      await close();
    }
  });

  test('which one that somebody waits for does not', async () => {
    const { factory, close } = await openProcessFactory();
    try {
      expect(processorPart(await factory.create(spec))).toBe(1);
    } finally {
      await close();
    }
  });
});
