import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runProgram } from '@gpuwhisk/invoker/host/programs';
import { standIn, startStandIn, type StandIn } from '@gpuwhisk/test/gpu/stand-in';
import { readSamples } from '../../gpu/sample-file.js';
import type { StageGiven } from '../../gpu/stage.js';
import { measureColocation } from './colocation.js';
import { measureTokens } from './tokens.js';

const timeoutMs = 240_000;
const budgetMs = 60_000;

(existsSync(standIn.daemon) ? describe : describe.skip)('stages on the stand-in', () => {
  let machine: StandIn;
  let given: StageGiven;
  beforeAll(async () => {
    machine = await startStandIn('h100', ['--context-ms', '5', '--module-ms', '0']);
    const env = {
      GPUWHISK_SIM_SOCKET: machine.socket,
      LD_LIBRARY_PATH: standIn.folder,
      PATH: `${standIn.folder}${delimiter}${process.env['PATH'] ?? ''}`,
    };
    const mps = {
      CUDA_MPS_PIPE_DIRECTORY: join(machine.folder, 'mps'),
      CUDA_MPS_LOG_DIRECTORY: join(machine.folder, 'log'),
    };
    await Promise.all(Object.values(mps).map((path) => mkdir(path)));
    await runProgram(standIn.mpsControl, ['-d'], { timeoutMs: 20_000, env: { ...env, ...mps } });
    const native = join(standIn.folder, '..');
    const out = mkdtempSync(join(tmpdir(), 'gpuwhisk-stages-'));
    given = { simulated: true, native, python: 'python3', env, mps, out, budgetMs, seed: 1, say: () => {} };
  }, timeoutMs);
  afterAll(async () => {
    const env = { ...given.env, ...given.mps };
    await runProgram(standIn.mpsControl, [], { timeoutMs: 20_000, env, input: 'quit\n' });
    await machine.close();
    rmSync(given.out, { recursive: true, force: true });
  });

  const within = async <Result>(budgetMs: number, run: () => Promise<Result>): Promise<Result> => {
    const start = performance.now();
    const result = await run();
    expect(performance.now() - start).toBeLessThan(budgetMs);
    return result;
  };

  test(
    'tokens: overhead, the shares of two processes, and a change of them',
    async () => {
      const { metrics, failures } = await within(budgetMs, () => measureTokens(given));
      // Times of the stand-in depend on the load of the machine: how close shares come is asserted on a device.
      expect(failures.filter((failure) => !/^Two processes of|^A change of shares/.test(failure))).toEqual([]);
      expect(metrics['tokenOverhead']).toBe(metrics['tokenOverhead.driver']);
      expect(Math.abs(metrics['tokenOverhead'] ?? NaN)).toBeLessThan(1);
      for (const percent of [30, 70]) {
        expect(metrics[`tokenShare.${percent}`]).toBe(metrics[`tokenShare.${percent}.driver`]);
        expect(metrics[`tokenShare.${percent}`]).toBeGreaterThan(0);
      }
      const changed = failures.some((failure) => failure.startsWith('A change')) ? 0 : 1;
      expect(Object.keys(metrics).filter((name) => name === 'tokenReshareMs')).toHaveLength(changed);
    },
    timeoutMs,
  );

  test(
    'co-location: a second call goes on where the first ended, and both end within their budget',
    async () => {
      const short = { ...given, budgetMs: 8000 };
      const first = await within(short.budgetMs, () => measureColocation(short));
      expect(first.failures).toEqual([]);
      const [file = ''] = readdirSync(given.out);
      expect(file).toMatch(/^gpu-.*simulated-samples\.jsonl$/);
      const lines = (): string[] => readFileSync(join(given.out, file), 'utf8').trim().split('\n');
      const before = lines();
      expect(first.metrics).toMatchObject({
        colocationSamples: before.length,
        newSamples: before.length,
        failedSamples: 0,
      });
      const second = await within(short.budgetMs, () => measureColocation(short));
      expect(second.failures).toEqual([]);
      expect(second.metrics['newSamples']).toBeGreaterThan(0);
      expect(lines().slice(0, before.length)).toEqual(before);

      const samples = [...(await readSamples(join(given.out, file))).values()];
      expect(samples).toHaveLength(lines().length);
      expect(new Set(samples.map(({ mode }) => mode))).toEqual(new Set(['mps', 'timeslice']));
      for (const { members, activity } of samples) {
        expect(activity.smActivity).toBeGreaterThan(0);
        for (const { slowdown, medianMs, p95Ms, p99Ms, perS } of members) {
          expect(slowdown).toBeGreaterThan(0);
          expect(p95Ms).toBeGreaterThanOrEqual(medianMs);
          expect(p99Ms).toBeGreaterThanOrEqual(p95Ms);
          expect(perS).toBeGreaterThan(0);
        }
      }
    },
    timeoutMs,
  );

  test('a machine without a device is a failure', async () => {
    const env = { ...given.env, CUDA_VISIBLE_DEVICES: '' };
    for (const stage of [measureTokens, measureColocation]) {
      const { metrics, failures } = await stage({ ...given, env, mps: undefined });
      expect(metrics).toEqual({});
      expect(failures).toEqual([expect.stringMatching(/^There is no device to measure: .*NO_DEVICE/)]);
    }
  });

  test('MPS that is not in force is a failure, and processes take turns', async () => {
    const mps = { CUDA_MPS_PIPE_DIRECTORY: join(machine.folder, 'none') };
    const out = join(given.out, 'turns');
    const { metrics, failures } = await measureColocation({ ...given, mps, out, budgetMs: 4000 });
    expect(failures).toEqual([expect.stringMatching(/^MPS is not in force: a client of 50 % has 132 of 132 SMs/)]);
    expect(metrics['newSamples']).toBeGreaterThan(0);
    const [file = ''] = readdirSync(out);
    const samples = [...(await readSamples(join(out, file))).values()];
    expect(samples.every(({ mode }) => mode === 'timeslice')).toBe(true);
  });
});
