import { describe, expect, test } from '@jest/globals';
import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { noCgroups } from '@gpuwhisk/invoker/containers/sandbox/cgroups';
import { busyScript } from './container-calls.js';
import { initialized, run } from './containers/cases.js';
import { hasLauncher, isRoot, openProcessFactory } from './process-harness.js';
import type { ProcessHarness } from './process-harness.js';

const reason = hasLauncher ? undefined : 'the sandbox launcher is not built';
const suite = reason === undefined ? describe : describe.skip;
/** For what needs sandboxes with all measures. */
const whole = isRoot ? test : test.skip;
const busy = isRoot && existsSync('/usr/bin/perl') ? test : test.skip;
const platform = fileURLToPath(new URL('./platform-process.js', import.meta.url));
/** Time in which all processes become busy, ms. */
const busyMs = 500;
/** Command-line argument that only the sandboxes of these tests' platforms have. */
const mark = `7${process.pid}.125`;

/** Processes whose first argument is `word`. */
function marked(word = mark): string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(join('/proc', name, 'cmdline'), 'utf8').split('\0')[1] === word;
    } catch {
      return false; // The process has ended.
    }
  });
}

function parentOf(pid: string): string | undefined {
  return /^PPid:\t(\d+)$/m.exec(readFileSync(join('/proc', pid, 'status'), 'utf8'))?.[1];
}

async function until(condition: () => boolean, withinMs: number): Promise<number> {
  const beganMs = performance.now();
  while (!condition() && performance.now() - beganMs < withinMs) await new Promise((done) => setTimeout(done, 10));
  return performance.now() - beganMs;
}

/** Tells the launchers of a factory, and processes that they have cloned. */
function launchedOf({ dataDir }: Pick<ProcessHarness, 'dataDir'>): () => string[] {
  const hash = createHash('sha256').update(realpathSync(dataDir)).digest('hex').slice(0, 12);
  return () => marked(`gpuwhisk-${hash}`);
}

/** The first processes of sandboxes among `pids`: those with a view of mounts of their own. */
function firstProcesses(pids: string[]): string[] {
  const viewOf = (pid: string): string | undefined => {
    try {
      return readlinkSync(join('/proc', pid, 'ns/mnt'));
    } catch {
      return undefined; // The process has ended.
    }
  };
  const own = viewOf('self');
  return pids.filter((pid) => ![own, undefined].includes(viewOf(pid)));
}

/** Starts a platform of platform-process.ts in its own process. */
async function startPlatform(dataDir: string, sort = ''): Promise<ChildProcess> {
  const child = spawn(process.execPath, [platform, dataDir, mark, sort], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      if (chunk.includes('running')) resolve();
    });
    child.on('exit', (code) => reject(new Error(`The platform ended with ${code}.`)));
  });
  return child;
}

suite(`the life of sandboxes${reason ? ` (skipped: ${reason})` : ''}`, () => {
  test('nothing outlives a killed platform by more than a second, paused or not', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-killed-'));
    const child = await startPlatform(dataDir);
    expect(marked()).toHaveLength(3);
    const launched = launchedOf({ dataDir });
    // Those of the containers, and of sandboxes that wait.
    expect(launched().length).toBeGreaterThan(2);
    child.kill('SIGKILL');
    expect(await until(() => marked().length + launched().length === 0, 2000)).toBeLessThan(1000);
    const next = await openProcessFactory({ dataDir });
    expect(readdirSync(join(dataDir, 'sandboxes')).sort()).toEqual(['.etc', '.probe', '.root']);
    await next.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  busy('1,000 busy processes outlive a killed platform by no more than a second', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-killed-'));
    const child = await startPlatform(dataDir, 'busy');
    try {
      expect(await until(() => marked().length > 900, 20_000)).toBeLessThan(20_000);
      await until(() => false, busyMs);
    } finally {
      child.kill('SIGKILL');
    }
    expect(await until(() => marked().length === 0, 3000)).toBeLessThan(1000);
    rmSync(dataDir, { recursive: true, force: true });
  });

  test('leftovers of an earlier life are killed at the start', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-leftover-'));
    const child = await startPlatform(dataDir);
    expect(marked()).toHaveLength(3);
    // A stopped platform keeps its sandboxes alive, as if the kernel had not ended them.
    child.kill('SIGSTOP');
    const next = await openProcessFactory({ dataDir });
    expect(marked()).toHaveLength(0);
    const container = await initialized(next.factory);
    expect(await run(container, { a: 1 }).outcome).toMatchObject({ type: 'result' });
    await next.close();
    child.kill('SIGKILL');
    rmSync(dataDir, { recursive: true, force: true });
  });

  test('a container ends with everything that it started', async () => {
    const harness = await openProcessFactory();
    const container = await initialized(harness.factory);
    const script = `for (let i = 0; i < 3; i++) spawn('/bin/sh', ['-c', 'trap "" TERM HUP; setsid sleep ${mark} & sleep ${mark}'],
      { detached: true }); await sleep(300); return 0;`;
    expect(await run(container, { do: 'script', script }).outcome).toMatchObject({ type: 'result' });
    expect(marked().length).toBeGreaterThanOrEqual(6);
    await container.destroy();
    expect(marked()).toHaveLength(0);
    await harness.close();
  });

  busy.each([
    ['with control groups', {}],
    ['without', { cgroups: noCgroups }],
  ])('a container of 1,000 busy processes is over within a second, with all of them: %s', async (_, options) => {
    const harness = await openProcessFactory(options);
    const container = await initialized(harness.factory, { memoryMiB: 512 });
    expect(await run(container, { do: 'script', script: busyScript(mark) }).outcome).toMatchObject({ type: 'result' });
    const forkedMs = await until(() => marked().length > 900, 20_000);
    await until(() => false, busyMs);
    const beganMs = performance.now();
    await container.destroy();
    expect(marked()).toEqual([]);
    const tookMs = performance.now() - beganMs;
    await harness.close();
    expect(forkedMs).toBeLessThan(20_000);
    expect(tookMs).toBeLessThan(1000);
  });

  test('a container whose program ends by itself ends with everything that it started', async () => {
    const harness = await openProcessFactory();
    const container = await initialized(harness.factory);
    const script = `spawn('/bin/sleep', ['${mark}'], { detached: true }); await sleep(100); process.exit(0);`;
    expect(await run(container, { do: 'script', script }).outcome).toEqual({ type: 'lost', oomKilled: false });
    await container.exited;
    expect(marked()).toHaveLength(0);
    await harness.close();
  });

  whole.each(['private', 'shared'])(
    'what the host mounts while a sandbox waits is not in it, and what it unmounts is free: %s mounts',
    async (propagation) => {
      const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-mount-'));
      const [image, before, dataDir] = [join(folder, 'image'), join(folder, 'before'), join(folder, 'data')];
      const later = join(dataDir, 'sandboxes/.etc/later');
      const has = (pid: string, path: string): boolean =>
        readFileSync(join('/proc', pid, 'mountinfo'), 'utf8').includes(`${path} `);
      const mount = (...words: string[]): void => void execFileSync('mount', words);
      mount('-t', 'tmpfs', 'none', folder);
      // As all mounts are where systemd runs.
      if (propagation === 'shared') mount('--make-shared', folder);
      mkdirSync(before);
      execFileSync('truncate', ['-s', '8M', image]);
      execFileSync('mkfs.ext4', ['-q', image]);
      mount('-o', 'loop', image, before);
      const harness = await openProcessFactory({ dataDir });
      try {
        const launched = launchedOf(harness);
        const waiting = (): string[] => firstProcesses(launched());
        await until(() => waiting().length === 2 && !waiting().some((pid) => has(pid, before)), 5000);
        expect(waiting()).toHaveLength(2);
        execFileSync('umount', [before]);
        const users = (): string => execFileSync('losetup', ['-j', image], { encoding: 'utf8' });
        await until(() => users() === '', 1000);
        expect(users()).toBe('');
        // Below a folder that sandboxes see.
        mkdirSync(later);
        mount('-t', 'tmpfs', 'none', later);
        expect(waiting().filter((pid) => has(pid, '/etc/later'))).toEqual([]);
        const container = await initialized(harness.factory);
        expect(await run(container, { a: 1 }).outcome).toMatchObject({ type: 'result' });
        await container.destroy();
      } finally {
        await harness.close();
        execFileSync('umount', ['-R', folder]);
        rmSync(folder, { recursive: true });
      }
    },
  );

  whole('a sandbox that was begun ahead and ends as it is taken is replaced', async () => {
    const harness = await openProcessFactory();
    const launched = launchedOf(harness);
    await until(() => firstProcesses(launched()).length === 2, 5000);
    const launchers = launched().filter((pid) => parentOf(pid) === String(process.pid));
    expect(launchers).toHaveLength(2);
    for (const pid of launchers) process.kill(Number(pid), 'SIGKILL');
    // This process is not told of their end before it yields.
    while (launchers.some((pid) => !/^State:\tZ/m.test(readFileSync(join('/proc', pid, 'status'), 'utf8')))) continue;
    const container = await initialized(harness.factory);
    expect(await run(container, { a: 1 }).outcome).toMatchObject({ type: 'result' });
    await container.destroy();
    await harness.close();
    expect(launched()).toEqual([]);
  });

  whole('a sandbox that was begun ahead and has ended is not used', async () => {
    const harness = await openProcessFactory();
    const launched = launchedOf(harness);
    // Two launchers, each with the first process of its sandbox.
    await until(() => firstProcesses(launched()).length === 2, 5000);
    const launchers = launched().filter((pid) => parentOf(pid) === String(process.pid));
    expect(launchers).toHaveLength(2);
    for (const pid of firstProcesses(launched())) process.kill(Number(pid), 'SIGKILL');
    // Until this process, their parent, has been told of their end.
    expect(await until(() => !launchers.some((pid) => existsSync(join('/proc', pid))), 2000)).toBeLessThan(1000);
    const container = await initialized(harness.factory);
    expect(await run(container, { a: 1 }).outcome).toMatchObject({ type: 'result' });
    await container.destroy();
    await harness.close();
    expect(launched()).toEqual([]);
  });
});
