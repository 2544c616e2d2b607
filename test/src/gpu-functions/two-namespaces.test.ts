// Functions of two namespaces that declare their share, on one simulated GPU where the platform has started MPS by itself.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import type { ApiClient } from '../support/api-client.js';
import { newSubject } from '../support/operator.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { compileGpuFunction, devicesOf } from './gpu-functions.js';

const caseMs = 120_000;
const soonMs = 30_000;
const isHere = hasStandIn() && hasNative();

(isHere ? describe : describe.skip)('two namespaces on one simulated GPU', () => {
  let platform: RunningPlatform;
  let code: Buffer;
  beforeAll(async () => {
    code = compileGpuFunction();
    platform = await startPlatform({ flags: ['--gpus', 'sim:a100-40', '--stem-cells', 'false'] });
  }, caseMs);
  afterAll(() => platform.stop(), caseMs);

  const open = async (name: string, limits = {}): Promise<ApiClient> => {
    const tenant = await newSubject(platform, name, limits);
    await tenant.putAction('half', code, {
      kind: 'native:1',
      annotations: { gpu: { memoryMiB: 2000, mpsPercent: 50 } },
    });
    return tenant;
  };
  const mode = async (): Promise<unknown> => (await devicesOf(platform))[0]?.mode;

  test(
    'run at once: it goes over to time slices, and back for a namespace whose share is bounded',
    async () => {
      const tenants = [await open('tenant-one'), await open('tenant-two')];
      expect(await mode()).toBe('mps');
      const call = (holdMs: number): Promise<string[]> =>
        Promise.all(tenants.map((tenant) => tenant.submit('half', { holdMs })));
      const records = async (ids: readonly string[]) => {
        const ended = await Promise.all(ids.map((id, at) => tenants[at % 2]!.record(id)));
        for (const { response } of ended) expect(response).toMatchObject({ success: true, result: { result: 0 } });
        return ended;
      };
      const first = await call(4000);
      await until('it is in time slices', async () => (await mode()) === 'timeslice', soonMs);
      await records(first);
      const [one, other] = await records(await call(2000));
      expect(one!.start).toBeLessThan(other!.end);
      expect(other!.start).toBeLessThan(one!.end);

      const bounded = await open('tenant-three', { maxGpuShare: 50 });
      const { status, body } = await bounded.invokeForResult('half', {});
      expect([status, body]).toMatchObject([200, { result: 0, sms: 54 }]);
      expect(await mode()).toBe('mps');
    },
    caseMs,
  );
});
