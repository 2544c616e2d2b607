// A function on a simulated GPU with kernel tokens: the interception library observes its driver calls.
import { afterEach, describe, expect, test } from '@jest/globals';
import type { FunctionPerformance } from '@gpuwhisk/controller/api/gpu-performance-views';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { compileGpuFunction, devicesOf } from './gpu-functions.js';
import { removeDataDir, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const mebibyte = 2 ** 20;
const code = `
import ctypes
cuda = ctypes.CDLL('libcuda.so.1')
def main(args):
    context, pointer, free, total = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_size_t()
    made = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)]
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    allocated = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(args['bytes']))
    counted = hasattr(ctypes.CDLL(None), 'gpuwhisk_tokens_mark')
    return {'made': made, 'total': total.value, 'allocated': allocated, 'counted': counted}
`;

if (!hasStandIn()) console.info('No stand-in for a GPU is built here: functions under kernel tokens are not tested.');

(hasStandIn() ? describe : describe.skip)('kernel tokens on the platform', () => {
  let platform: RunningPlatform | undefined;
  afterEach(async () => {
    await platform?.end('SIGTERM');
    if (platform !== undefined) removeDataDir(platform.dataDir);
    platform = undefined;
  });

  (hasNative() ? test : test.skip)(
    'what a function launches is counted, its runs are cycles, and both are shown',
    async () => {
      platform = await startPlatform({
        flags: ['--gpus', 'sim:a100-40', '--stem-cells', 'false', '--set', 'gpu.tokens=true'],
      });
      const { api } = platform;
      const gpu = { memoryMiB: 2048, smRequest: 0.2, smLimit: 0.5 };
      await api.putAction('counted', compileGpuFunction(), { kind: 'native:1', annotations: { gpu } });
      for (let run = 0; run < 2; run++) {
        expect((await api.invokeForResult('counted', { deviceMs: 40 })).body).toMatchObject({ result: 0 });
      }
      const running = platform;
      const launches = async () =>
        (await devicesOf(running))[0]!.functions.find(({ action }) => action === '/guest/counted')?.launches;
      await until('its runs are shown', async () => ((await launches())?.cycles ?? 0) >= 2, 30_000);
      // Each run launches four kernels that fill the device ten times.
      expect(await launches()).toMatchObject({ blocks: 2 * 4 * 108 * 8 * 10 });
      expect((await launches())?.cycleMs).toBeGreaterThan(0);
      // Its neighbours are none.
      expect((await launches())?.state).toBe('NONE');
      const [shown] = await devicesOf(running);
      expect(shown).toMatchObject({ tokenState: 'NONE', functions: [{ smRequest: 0.2, smLimit: 0.5 }] });
    },
  );

  test('a function sees its memory cap as the device, and is refused more', async () => {
    platform = await startPlatform({
      flags: ['--gpus', 'sim:a100-40', '--stem-cells', 'false', '--set', 'gpu.tokens=true'],
    });
    const { api } = platform;
    await api.putAction('capped', code, { kind: 'python:3', annotations: { gpu: { memoryMiB: 2048 } } });
    const seen = { made: [0, 0, 0], total: 2048 * mebibyte, counted: true };
    expect((await api.invoke('capped', { bytes: mebibyte })).body).toMatchObject({
      response: { result: { ...seen, allocated: 0 } },
    });
    expect((await api.invoke('capped', { bytes: 3000 * mebibyte })).body).toMatchObject({
      response: { result: { ...seen, allocated: 2 } },
    });
  });

  (hasNative() ? test : test.skip)(
    'policy faashare holds a run back while a shorter one is beside it, and gives its share back then',
    async () => {
      const policy = JSON.stringify({ base: 'faashare', settings: { minMoveGain: 0 } });
      platform = await startPlatform({
        flags: [
          '--gpus',
          'sim:a100-40',
          '--stem-cells',
          'false',
          '--set',
          'gpu.tokens=true',
          '--set',
          `gpu.policy=${policy}`,
        ],
      });
      const running = platform;
      const { api } = platform;
      const put = (name: string, smUtil: number): Promise<unknown> => {
        const gpu = { memoryMiB: 2048, features: { smUtil } };
        return api.putAction(name, compileGpuFunction(), { kind: 'native:1', annotations: { gpu } });
      };
      await Promise.all([put('long', 0.7), put('short', 0.6)]);
      const measured = async (): Promise<boolean> => {
        await api.invokeForResult('long', { deviceMs: 1500 });
        await api.invokeForResult('short', { deviceMs: 500 });
        const { body } = await api.request<FunctionPerformance[]>('GET', '../gpu/functions');
        return body.length === 2 && body.every(({ batches }) => batches[0]?.soloMs !== undefined);
      };
      await until('both are measured', measured, 60_000);
      const limits: number[] = [];
      const note = async (): Promise<void> => {
        const { functions } = (await devicesOf(running))[0]!;
        const limit = functions.find(({ action }) => action === '/guest/long')?.smLimit;
        if (limit !== undefined && limit !== limits.at(-1)) limits.push(limit);
      };
      await note();
      const long = await api.submit('long', { deviceMs: 3000 });
      const short = await api.submit('short', { deviceMs: 500 });
      const isOver = async (id: string): Promise<boolean> => {
        await note();
        return (await api.request('GET', `_/activations/${id}`)).status === 200;
      };
      await until('both have run', async () => (await isOver(short)) && (await isOver(long)), 60_000);
      expect(limits).toEqual([0.7, expect.any(Number), 0.7]);
      expect(limits[1]).toBeLessThan(0.7);
    },
    120_000,
  );
});
