import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { withCompiler } from '../native/compiler.js';

const timeoutMs = 240_000;
const main = fileURLToPath(new URL('../../../bench/dist/main.js', import.meta.url));

interface Result {
  device: string;
  driver: string;
  mps: boolean;
  simulated: boolean;
  metrics: Record<string, number>;
}

withCompiler('the benchmark of a GPU', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-gpu-bench-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const run = async (...flags: string[]): Promise<Result> => {
    const args = [main, 'gpu', '--simulated', '--seconds', '0.02', '--out', results(), ...flags];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder, timeout: timeoutMs });
    return JSON.parse(stdout) as Result;
  };
  const results = (): string => join(folder, 'results');
  const samples = (): {
    id: string;
    simulated: boolean;
    members: { slowdown?: number; p95Ms: number; p99Ms: number }[];
  }[] => {
    const file = readdirSync(results()).find((name) => name.endsWith('-samples.jsonl')) ?? '';
    return readFileSync(join(results(), file), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  };

  test(
    'measures latency by share, tokens and co-location on the stand-in, and says that it is simulated',
    async () => {
      const result = await run('--samples', '3');
      expect(result).toMatchObject({ mps: true, simulated: true, device: expect.stringContaining('(simulated)') });
      expect(result.driver).toContain('simulated');
      for (const percent of [10, 20, 30, 50, 70, 100]) {
        expect(result.metrics[`matmul.1024Ms.${percent}`]).toBeGreaterThan(0);
      }
      for (const percent of [10, 25, 50, 75, 100]) {
        expect(result.metrics[`tokenThroughput.${percent}`]).toBeGreaterThan(0);
      }
      expect(result.metrics['failedSamples']).toBe(0);
      expect(readdirSync(results()).every((name) => name.includes('simulated'))).toBe(true);
      const all = samples();
      expect(all).toHaveLength(result.metrics['colocationSamples'] as number);
      expect(all.every(({ simulated, members }) => simulated && members.every(({ slowdown }) => slowdown))).toBe(true);
      expect(all.every(({ members }) => members.every(({ p95Ms, p99Ms }) => p99Ms >= p95Ms && p95Ms > 0))).toBe(true);

      // The second start continues with the missing parts.
      const further = await run('--samples', '5', '--parts', 'colocation');
      expect(further.metrics['colocationSamples']).toBeGreaterThan(all.length);
      expect(samples().slice(0, all.length)).toEqual(all);
      expect(new Set(samples().map(({ id }) => id)).size).toBe(samples().length);
    },
    timeoutMs,
  );

  test('says that there is no device', async () => {
    const args = [main, 'gpu', '--parts', 'matmul', '--out', results()];
    const alone = promisify(execFile)(process.execPath, args, {
      env: { ...process.env, CUDA_VISIBLE_DEVICES: '' },
      timeout: timeoutMs,
    });
    await expect(alone).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/libcuda|NO_DEVICE/) });
  });

  test('says what is wrong with a command line', async () => {
    await expect(run('--parts', 'none')).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining("'none'") });
  });
});
