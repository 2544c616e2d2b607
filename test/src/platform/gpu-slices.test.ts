// A device that somebody cuts by MIG while the platform runs.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { annotation } from './api-client.js';
import { compileGpuFunction, cut, devicesOf } from './gpu-functions.js';
import { startPlatform, until } from './running-platform.js';
import type { RunningPlatform } from './running-platform.js';

const caseMs = 120_000;
const soonMs = 60_000;
/** NVIDIA's numbers of the profiles. */
const [threeSlices, twoSlices] = [9, 14];

(hasStandIn() && hasNative() ? describe : describe.skip)('a device that is cut into slices', () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    platform = await startPlatform({ flags: ['--gpus', 'sim:a100-40', '--stem-cells', 'false'] });
  }, caseMs);
  afterAll(() => platform.stop(), caseMs);

  /** Runs a function that asks for so much; resolves with the slice that its record names, and with its result. */
  async function run(name: string, gpu: JsonObject, payload: JsonObject): Promise<[unknown, JsonObject]> {
    await platform.api.putAction(name, compileGpuFunction(), { kind: 'native:1', annotations: { gpu } });
    const { record } = await platform.api.run(name, payload);
    return [(annotation(record, 'gpu') as JsonObject).slice, record.response.result];
  }

  test(
    'serves functions on its slices: each sees one, with its share of that one’s SMs and its memory',
    async () => {
      const slices = [cut(platform, 0, threeSlices), cut(platform, 0, twoSlices)];
      await until('it is known', async () => (await devicesOf(platform))[0]?.mode === 'mig', soonMs);
      const large = { memoryMiB: 12_000, mpsPercent: 50 };
      const [slice, result] = await run('large', large, { allocMiB: 11_000 });
      expect(slice).toBe(slices[0]);
      expect(result).toMatchObject({ result: 0, alloc: 0, devices: 1, sms: 21 });
      const over = await run('large', large, { allocMiB: 12_001 });
      expect(over[1]).toMatchObject({ alloc: 2 });
    },
    caseMs,
  );
});
