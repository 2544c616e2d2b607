// Work that comes past MPS to a simulated GPU where the platform has started MPS by itself.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { join } from 'node:path';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { startCudaClient } from '../gpu/cuda-client.js';
import { compileGpuFunction, devicesOf } from './gpu-functions.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const isHere = hasStandIn() && hasNative();

(isHere ? describe : describe.skip)('foreign work on a simulated GPU', () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    platform = await startPlatform({ flags: ['--gpus', 'sim:a100-40'] });
    const annotations = { gpu: { memoryMiB: 1500, mpsPercent: 50 } };
    await platform.api.putAction('half', compileGpuFunction(), { kind: 'native:1', annotations });
  }, caseMs);
  afterAll(() => platform.stop(), caseMs);

  const sms = async (payload = {}): Promise<unknown> => {
    const { status, body } = await platform.api.invokeForResult('half', payload);
    if (status !== 200) throw new Error(`It was answered ${status}: ${JSON.stringify(body)}`);
    return body.sms;
  };

  test(
    'empties the device after the runs there, and takes turns with functions from then on',
    async () => {
      expect(platform.output()).toContain(
        'Functions use the GPUs side by side: MPS was started; the compute mode is as it was.',
      );
      expect(await sms()).toBe(54);
      const device = async () => (await devicesOf(platform))[0]!;
      const running = platform.api.run('half', { holdMs: 8000 });
      await until('it runs', async () => (await device()).functions.some((one) => one.running > 0), 30_000);
      const machine = { socket: join(platform.dataDir, 'gpus', 'gpus.sock') };
      const other = await startCudaClient(machine, { CUDA_VISIBLE_DEVICES: (await device()).uuid });
      try {
        await until('it gets no new work', async () => (await device()).health.state === 'cordoned', 30_000);
        expect((await device()).health.reasons).toEqual(['other work uses it past MPS']);
        expect((await running).record.response.result).toMatchObject({ result: 0, sms: 54 });
        await until('functions take turns', async () => (await device()).mode === 'timeslice', 30_000);
        await until('it takes work', async () => (await device()).health.state === 'healthy', 30_000);
        expect(await sms()).toBe(108);
        expect(await other.ask('sync')).toEqual([0]);
        expect(platform.output()).toMatch(/functions and other work take turns on a GPU until the next start/);
      } finally {
        await other.end();
      }
    },
    caseMs,
  );
});
