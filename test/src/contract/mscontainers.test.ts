// Pairs that share a PID namespace: which processes they see of each other, and how they end.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JsonValue } from '@gpuwhisk/common/json';
import { until } from '@gpuwhisk/common/testing/until';
import type { Container } from '@gpuwhisk/invoker/containers/container-factory';
import { maxPairs } from '@gpuwhisk/invoker/containers/mscontainer/mscontainer-factory';
import { spec } from './container-calls.js';
import { initialized, run } from './containers/cases.js';
import { hasLauncher, isRoot, openMsContainerFactory } from './process-harness.js';
import type { ProcessHarness } from './process-harness.js';

const reason = !hasLauncher ? 'the sandbox launcher is not built' : !isRoot ? 'sharing needs root' : undefined;
const suite = reason === undefined ? describe : describe.skip;
const platform = fileURLToPath(new URL('./platform-process.js', import.meta.url));
/** Command-line argument that only the pairs of these tests have. */
const mark = `8${process.pid}.25`;

/**
 * Runs the script as an async function in the container. Returns its result, or `{thrown}` with the code of its error.
 */
async function inside(container: Container, script: string): Promise<JsonValue> {
  const outcome = await run(container, { do: 'script', script }).outcome;
  if (outcome.type !== 'result' || Array.isArray(outcome.result)) throw new Error(JSON.stringify(outcome));
  const { value, thrown } = outcome.result;
  return thrown === undefined ? (value ?? null) : { thrown };
}

/** PIDs on this machine whose command line passes `isWanted`. */
function running(isWanted: (words: string[]) => boolean): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      return isWanted(readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0'));
    } catch {
      return false; // The process has ended.
    }
  });
}
const marked = (): number[] => running((words) => words[1] === mark);

/** PIDs on the host of processes that have this PID in their own namespace. */
function hostPids(pid: number): number[] {
  return running(() => true).filter((each) => {
    try {
      const status = readFileSync(`/proc/${each}/status`, 'utf8');
      return new RegExp(`^NSpid:\\s+\\d+\\s+${pid}$`, 'm').test(status);
    } catch {
      return false;
    }
  });
}

/** PIDs of the holder processes that a platform started. */
const holdersOf = (platformPid: number): number[] =>
  running((words) => words[2] === '--hold').filter((pid) =>
    new RegExp(`^PPid:\\s+${platformPid}$`, 'm').test(readFileSync(`/proc/${pid}/status`, 'utf8')),
  );

suite(`pairs of an MSContainer${reason ? ` (skipped: ${reason})` : ''}`, () => {
  let harness: ProcessHarness;
  let one: Container;
  let other: Container;
  const pidOf = (container: Container): Promise<JsonValue> => inside(container, 'return process.pid;');

  beforeAll(async () => {
    harness = await openMsContainerFactory();
    [one, other] = await Promise.all([initialized(harness.factory), initialized(harness.factory)]);
  });
  afterAll(() => harness.close());

  test('lie in one, with process ids of their own', async () => {
    expect(one.msContainer).toMatch(/^[0-9a-f]{8}$/);
    expect(other.msContainer).toBe(one.msContainer);
    expect(await pidOf(one)).not.toBe(await pidOf(other));
  });

  test('see and reach no process of each other, nor the first one', async () => {
    const theirs = Number(await pidOf(other));
    const theirFirst = Number(await inside(other, 'return process.ppid;'));
    const reach = `const fs = require('node:fs');
      const codes = [];
      for (const pid of [1, ${theirs}, ${theirFirst}]) {
        for (const act of [() => process.kill(pid, 0), () => process.kill(pid, 'SIGKILL'),
          () => fs.readFileSync('/proc/' + pid + '/cmdline'), () => fs.openSync('/proc/' + pid + '/mem')]) {
          try { act(); codes.push('reached ' + pid + ' by ' + act); } catch (error) { codes.push(error.code); }
        }
      }
      return [codes, fs.readdirSync('/proc').filter((name) => Number(name) > 0), process.pid];`;
    const [codes, seen, own] = (await inside(one, reach)) as [string[], string[], number];
    expect(new Set(codes)).toEqual(new Set(['EPERM', 'ENOENT']));
    expect(seen).toEqual([String(own)]);
    await inside(one, `try { process.kill(-1, 'SIGCONT'); } catch {} return 0;`);
    expect(await pidOf(other)).toBe(theirs);
  });

  test('one ends with everything that it started, and the other runs on', async () => {
    const container = await initialized(harness.factory);
    const script = `for (let i = 0; i < 3; i++) spawn('/bin/sh', ['-c', 'trap "" TERM HUP; setsid sleep ${mark} & sleep ${mark}'],
      { detached: true }); await sleep(300); return 0;`;
    await inside(container, script);
    expect(marked().length).toBeGreaterThanOrEqual(6);
    await container.destroy();
    expect(marked()).toHaveLength(0);
    expect(await pidOf(other)).toEqual(expect.any(Number));
  });

  test('one whose first process is killed ends with everything that it started', async () => {
    const container = await initialized(harness.factory);
    await inside(container, `spawn('/bin/sleep', ['${mark}'], { detached: true }); return 0;`);
    await until(() => marked().length === 1);
    const first = Number(await inside(container, 'return process.ppid;'));
    const killed = await inside(
      container,
      `try { process.kill(${first}, 'SIGSTOP'); return 'reached'; } catch (error) { return error.code; }`,
    );
    expect(killed).toBe('EPERM');
    for (const pid of hostPids(first)) process.kill(pid, 'SIGKILL');
    await container.destroy();
    expect(marked()).toHaveLength(0);
    expect(await pidOf(other)).toEqual(expect.any(Number));
  });

  test('one whose launcher is killed ends with everything that it started', async () => {
    const container = await initialized(harness.factory);
    await inside(container, `spawn('/bin/sleep', ['${mark}'], { detached: true }); return 0;`);
    await until(() => marked().length === 1);
    const first = Number(await inside(container, 'return process.ppid;'));
    const [host = 0] = hostPids(first);
    const launcher = Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${host}/status`, 'utf8'))?.[1]);
    process.kill(launcher, 'SIGKILL');
    await container.destroy();
    expect(marked()).toHaveLength(0);
    expect(await pidOf(other)).toEqual(expect.any(Number));
  });

  test('a paused one stops alone', async () => {
    const ticks = async (container: Container): Promise<number> =>
      Number(await inside(container, 'return globalThis.ticks;'));
    const start = 'globalThis.ticks = 0; setInterval(() => globalThis.ticks++, 5); return 0;';
    await Promise.all([inside(one, start), inside(other, start)]);
    await one.pause();
    let others = await ticks(other);
    const enough = others + 100;
    while (others < enough) others = await ticks(other);
    await one.resume();
    expect(await ticks(one)).toBeLessThan(others / 2);
  });

  test('are sixteen at most; the next lie in another one, which ends when they do', async () => {
    const full = await Promise.all(Array.from({ length: maxPairs }, () => harness.factory.prewarm(spec)));
    const ids = new Set(full.map(({ msContainer }) => msContainer));
    expect(ids.size).toBe(2);
    expect(full.filter(({ msContainer }) => msContainer === one.msContainer)).toHaveLength(maxPairs - 2);
    expect(holdersOf(process.pid)).toHaveLength(2);
    await Promise.all(full.map((each) => each.destroy()));
    expect(await pidOf(one)).toEqual(expect.any(Number));
  }, 60_000);
});

suite(`the end of an MSContainer${reason ? ` (skipped: ${reason})` : ''}`, () => {
  test('when its holder is killed its pairs exit, and the next lie in a new one', async () => {
    const harness = await openMsContainerFactory();
    const pairs = await Promise.all([initialized(harness.factory), initialized(harness.factory)]);
    const holders = holdersOf(process.pid);
    expect(holders).toHaveLength(1);
    process.kill(holders[0] ?? 0, 'SIGKILL');
    await Promise.all(pairs.map(({ exited }) => exited));
    const next = await initialized(harness.factory);
    expect(next.msContainer).not.toBe(pairs[0]?.msContainer);
    expect(await run(next, { a: 1 }).outcome).toMatchObject({ type: 'result' });
    await harness.close();
    expect(holdersOf(process.pid)).toHaveLength(0);
  });

  test('nothing of it outlives a killed platform', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-killed-'));
    const child = spawn(process.execPath, [platform, dataDir, mark, 'pairs'], { stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise<void>((resolve, reject) => {
      child.stdout.on('data', (chunk: Buffer) => {
        if (chunk.includes('running')) resolve();
      });
      child.on('exit', (code) => reject(new Error(`The platform ended with ${code}.`)));
    });
    expect(marked()).toHaveLength(3);
    expect(holdersOf(child.pid ?? 0)).toHaveLength(1);
    child.kill('SIGKILL');
    await until(() => marked().length === 0);
    const next = await openMsContainerFactory({ dataDir });
    expect(readdirSync(join(dataDir, 'sandboxes')).sort()).toEqual(['.etc', '.probe', '.root']);
    await next.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
});
