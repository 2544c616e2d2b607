import { describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { initialized, run } from './containers/cases.js';
import { hasLauncher, openProcessFactory } from './process-harness.js';

const reason = hasLauncher ? undefined : 'the sandbox launcher is not built';
const suite = reason === undefined ? describe : describe.skip;
const platform = fileURLToPath(new URL('./platform-process.js', import.meta.url));
/** Command-line argument that only the sandboxes of these tests' platforms have. */
const mark = `7${process.pid}.125`;

/** Processes whose command line contains `mark`. */
function marked(): string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(join('/proc', name, 'cmdline'), 'utf8').split('\0')[1] === mark;
    } catch {
      return false; // The process has ended.
    }
  });
}

async function until(condition: () => boolean, withinMs: number): Promise<number> {
  const beganMs = performance.now();
  while (!condition() && performance.now() - beganMs < withinMs) await new Promise((done) => setTimeout(done, 10));
  return performance.now() - beganMs;
}

/** Starts a platform in its own process, with two containers that each have a `sleep` in the background. */
async function startPlatform(dataDir: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [platform, dataDir, mark], { stdio: ['ignore', 'pipe', 'inherit'] });
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
    child.kill('SIGKILL');
    expect(await until(() => marked().length === 0, 2000)).toBeLessThan(1000);
    const next = await openProcessFactory({ dataDir });
    expect(readdirSync(join(dataDir, 'sandboxes')).sort()).toEqual(['.etc', '.probe', '.root']);
    await next.close();
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

  test('a container whose program ends by itself ends with everything that it started', async () => {
    const harness = await openProcessFactory();
    const container = await initialized(harness.factory);
    const script = `spawn('/bin/sleep', ['${mark}'], { detached: true }); await sleep(100); process.exit(0);`;
    expect(await run(container, { do: 'script', script }).outcome).toEqual({ type: 'lost', oomKilled: false });
    await container.exited;
    expect(marked()).toHaveLength(0);
    await harness.close();
  });
});
