// Functions with no more than memoryMiB on one simulated GPU under the default policy: two share it from their first call.
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { runWsk } from '../cli/wsk-process.js';
import { annotation } from '../support/api-client.js';
import type { ApiActivation } from '../support/api-client.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { compileGpuFunction, devicesOf } from './gpu-functions.js';

const caseMs = 120_000;
const flags = ['--gpus', 'sim:a100-40', '--stem-cells', 'false'];
const isHere = hasStandIn() && hasNative();
if (!isHere) console.info('No stand-in for a GPU is built here: plain functions are not tested on a platform.');

type Interval = Pick<ApiActivation, 'start' | 'end'>;

/** The greatest number of runs at one time, and their mean number from the first start to the last end. */
function together(runs: readonly Interval[]): { most: number; mean: number } {
  const beside = runs.map(({ start }) => runs.filter((one) => one.start <= start && start < one.end).length);
  const total = runs.reduce((sum, { start, end }) => sum + end - start, 0);
  const tookMs = Math.max(...runs.map(({ end }) => end)) - Math.min(...runs.map(({ start }) => start));
  return { most: Math.max(...beside), mean: total / tookMs };
}

(isHere ? describe : describe.skip)('plain functions on one simulated GPU', () => {
  let platform: RunningPlatform;
  let code: Buffer;
  beforeAll(() => {
    code = compileGpuFunction();
  }, caseMs);
  const start = async (): Promise<void> => {
    platform = await startPlatform({ flags });
  };
  afterEach(() => platform.stop(), caseMs);

  const put = (name: string, gpu: JsonObject = {}): Promise<unknown> =>
    platform.api.putAction(name, code, { kind: 'native:1', annotations: { gpu: { memoryMiB: 2000, ...gpu } } });
  const submit = (names: readonly string[], holdMs: number): Promise<string[]> =>
    Promise.all(names.map((name) => platform.api.submit(name, { deviceMs: 10, holdMs })));
  const recordsOf = async (ids: readonly string[]): Promise<ApiActivation[]> => {
    const records = await Promise.all(ids.map((id) => platform.api.record(id)));
    for (const { response } of records) expect(response).toMatchObject({ success: true, result: { result: 0 } });
    return records;
  };
  const wsk = async (...args: string[]): Promise<string> =>
    (
      await runWsk(['--apihost', platform.url, '--auth', platform.auth, 'gpu', ...args], {
        directory: platform.dataDir,
      })
    ).stdout;

  test(
    'three that are called at once run by twos, each with all SMs, and it is said what they run beside',
    async () => {
      await start();
      await Promise.all(['fa', 'fb', 'fc'].map((name) => put(name)));
      const ids = await submit(['fa', 'fb', 'fc'], 3000);
      await until('two run side by side', async () => {
        const [device] = await devicesOf(platform);
        return device?.functions.filter(({ running }) => running > 0).length === 2;
      });
      const top = await wsk('top', '--once');
      expect(top.match(/trying beside \/guest\/f[abc] \(\d+ runs? measured\)/g)).toHaveLength(2);
      const records = await recordsOf(ids);
      expect(together(records).most).toBe(2);
      for (const record of records) expect(annotation(record, 'gpu')).toMatchObject({ share: 1 });
      const told = (await Promise.all(ids.map((id) => wsk('explain', id)))).join('');
      expect(told).toMatch(/auto: placed: beside \/guest\/f[abc]: nothing measured yet/);
    },
    caseMs,
  );

  test(
    'one that is called eight times at once runs two at a time',
    async () => {
      await start();
      await put('fa');
      const records = await recordsOf(await submit(new Array<string>(8).fill('fa'), 2000));
      const { most, mean } = together(records);
      expect(most).toBe(2);
      expect(mean).toBeGreaterThan(1.6);
    },
    caseMs,
  );

  test(
    'two that each declare nine tenths of its memory take turns, and one that asks for more than its own harms no other',
    async () => {
      await start();
      await Promise.all(['la', 'lb'].map((name) => put(name, { memoryMiB: 34_000 })));
      const turns = await recordsOf(await submit(['la', 'lb', 'la', 'lb'], 300));
      expect(together(turns).most).toBe(1);
      await Promise.all(['greedy', 'modest'].map((name) => put(name)));
      const ids = await Promise.all([
        platform.api.submit('greedy', { allocMiB: 8000, deviceMs: 10, holdMs: 2000 }),
        platform.api.submit('modest', { allocMiB: 1000, deviceMs: 10, holdMs: 2000 }),
      ]);
      const [greedy, modest] = await recordsOf(ids);
      expect(together([greedy!, modest!]).most).toBe(2);
      // Error 2 of the driver: out of memory.
      expect([greedy!, modest!].map(({ response }) => (response.result as JsonObject)['alloc'])).toEqual([2, 0]);
    },
    caseMs,
  );

  test(
    'none runs beside one with an SLO, whichever comes first',
    async () => {
      await start();
      await Promise.all([put('strict', { sloMs: 60_000 }), put('fa'), put('fb')]);
      const ids = await submit(['fa', 'strict', 'fb', 'strict', 'fa'], 1000);
      const [fa, one, fb, other, last] = await recordsOf(ids);
      for (const strict of [one!, other!]) {
        for (const plain of [fa!, fb!, last!]) {
          expect(together([strict, plain])).toMatchObject({ most: 1 });
        }
      }
    },
    caseMs,
  );
});
