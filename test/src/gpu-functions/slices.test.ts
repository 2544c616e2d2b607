// A device that another program cuts by MIG while the platform runs.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { GeometryReport } from '@gpuwhisk/gpu/stages/geometry/geometry';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { annotation, ApiClient } from '../support/api-client.js';
import { compileGpuFunction, cut, devicesOf } from './gpu-functions.js';
import type { ShownDevice } from './gpu-functions.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const soonMs = 60_000;
/** NVIDIA's numbers of the profiles. */
const [threeSlices, twoSlices] = [9, 14];

(hasStandIn() && hasNative() ? describe : describe.skip)('a device that an operator cuts', () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    platform = await startPlatform({ flags: ['--gpus', 'sim:a100-40', '--stem-cells', 'false'] });
  }, caseMs);
  afterAll(() => platform.stop(), caseMs);

  const sleeper = 'async function main({ ms }) { await new Promise((done) => setTimeout(done, ms)); return { ms }; }';

  test(
    'gets no new work, is cut once what runs on it has ended, and works again; what stays is left alone',
    async () => {
      const { api } = platform;
      const operator = new ApiClient(platform.url, platform.operatorAuth);
      const [{ uuid }] = (await devicesOf(platform)) as [ShownDevice];
      const cutInto = async (...profiles: string[]): Promise<number> =>
        (await operator.request('PUT', `../gpu/devices/${uuid}/slices`, { profiles })).status;
      const profilesNow = async (): Promise<string[]> =>
        (await devicesOf(platform))[0]!.slices.map(({ profile }) => profile).sort();
      const healthNow = async (): Promise<string> => (await devicesOf(platform))[0]!.health.state;
      await api.putAction('first', sleeper, { annotations: { gpu: { memoryMiB: 4000 } } });
      await api.putAction('second', sleeper, { annotations: { gpu: { memoryMiB: 4000 } } });
      const running = await api.submit('first', { ms: 2500 });
      await until('it runs', async () => (await devicesOf(platform))[0]!.functions.some((one) => one.running === 1));
      expect(await cutInto('3g.20gb', '2g.10gb')).toBe(200);
      await until('no new work comes', async () => (await healthNow()) === 'cordoned', soonMs);
      const waits = await api.submit('second', { ms: 1 });
      expect((await api.record(running)).response.success).toBe(true);
      await until('it is cut', async () => (await profilesNow()).join() === '2g.10gb,3g.20gb', soonMs);
      const record = await api.record(waits);
      expect(record.response.result).toEqual({ ms: 1 });
      const { slice } = annotation(record, 'gpu') as { slice: string };
      const kept = (await devicesOf(platform))[0]!.slices.map((one) => one.uuid);
      expect(kept).toContain(slice);
      // The 3g slice stays; the 2g slice is replaced by two 1g slices.
      expect(await cutInto('3g.20gb', '1g.5gb', '1g.5gb')).toBe(200);
      await until('it is cut again', async () => (await profilesNow()).join() === '1g.5gb,1g.5gb,3g.20gb', soonMs);
      const now = (await devicesOf(platform))[0]!.slices.find(({ profile }) => profile === '3g.20gb');
      expect(kept).toContain(now?.uuid);
      expect(await cutInto()).toBe(200);
      await until('it is whole', async () => (await devicesOf(platform))[0]!.mode !== 'mig', soonMs);
      await until('it works again', async () => (await healthNow()) === 'healthy', soonMs);
      expect((await api.run('first', { ms: 1 })).record.response.success).toBe(true);
      expect(await cutInto('nine')).toBe(400);
      expect((await api.request('PUT', `../gpu/devices/${uuid}/slices`, { profiles: [] })).status).toBe(403);
      const unknown = await operator.request('PUT', '../gpu/devices/GPU-none/slices', { profiles: [] });
      expect(unknown.status).toBe(404);
    },
    caseMs,
  );
});

(hasStandIn() && hasNative() ? test : test.skip)(
  'stage geometry: protean cuts devices under load: each drains, is cut and takes work again, and no request is lost',
  async () => {
    const settings = { recutWindowS: 1, recutWeight: 1 };
    const policy = JSON.stringify({ base: 'least-loaded', geometry: 'protean', settings });
    const flags = ['--gpus', 'sim:a100-40x2', '--stem-cells', 'false', '--set', `gpu.policy=${policy}`];
    const platform = await startPlatform({ flags });
    try {
      const { api } = platform;
      const sleeper =
        'async function main({ ms }) { await new Promise((done) => setTimeout(done, ms)); return { ms }; }';
      await api.putAction('strict', sleeper, { annotations: { gpu: { memoryMiB: 2000, sloMs: 60_000 } } });
      await api.putAction('rest', sleeper, { annotations: { gpu: { memoryMiB: 2000 } } });
      const sent: string[] = [];
      const cuts: NonNullable<ShownDevice['cut']>[] = [];
      const devicesNow = async (): Promise<string[]> => {
        const devices = await devicesOf(platform);
        for (const { cut: done } of devices) {
          if (done?.cutMs === undefined || cuts.some((one) => JSON.stringify(one) === JSON.stringify(done))) continue;
          cuts.push(done);
        }
        return devices.map(({ slices }) =>
          slices
            .map(({ profile }) => profile)
            .sort()
            .join(),
        );
      };
      /** Sends requests of functions until both devices have these profiles, and `ended` cuts have ended. */
      const untilCut = async (ended: number, profiles: string, ...names: string[]): Promise<void> => {
        await until(
          `both are ${profiles}`,
          async () => {
            for (const name of names) sent.push(await api.submit(name, { ms: 200 }));
            // However fast the machine is, the devices keep up with them.
            await new Promise((done) => setTimeout(done, 30));
            return (await devicesNow()).every((one) => one === profiles) && cuts.length === ended;
          },
          soonMs,
        );
      };
      await untilCut(2, '3g.20gb,4g.20gb', 'strict', 'rest');
      // Without strict work small slices hold the rest.
      await untilCut(4, '1g.5gb,2g.10gb,4g.20gb', 'rest');
      const records = await Promise.all(sent.map((id) => api.record(id)));
      expect(records.map(({ response }) => response.result)).toEqual(sent.map(() => ({ ms: 200 })));
      const { body } = await api.request<{ geometry: GeometryReport }>('GET', '../gpu/policy');
      expect(body.geometry.cuts).toHaveLength(4);
      expect(cuts).toHaveLength(4);
      const took = cuts.map(({ drainMs = 0, cutMs = 0 }) => `${drainMs} + ${cutMs}`).join(', ');
      console.info(`Drain and cut of a device took ${took} ms, beside ${sent.length} requests of 200 ms.`);
    } finally {
      await platform.stop();
    }
  },
  caseMs,
);

(hasStandIn() && hasNative() ? describe : describe.skip)('a device that is cut into slices', () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    const flags = ['--gpus', 'sim:a100-40', '--stem-cells', 'false', '--set', 'gpu.policy=protean'];
    platform = await startPlatform({ flags });
  }, caseMs);
  afterAll(() => platform.stop(), caseMs);

  /** Runs a function with these GPU limits; resolves with the slice that its record names, and with its result. */
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

  test(
    'serves a mix under policy protean: strict requests on the slice that slows them down least, best effort on the smallest',
    async () => {
      const { api } = platform;
      const small = (await devicesOf(platform))[0]?.slices.find(({ profile }) => profile === '2g.10gb')?.uuid;
      const code = compileGpuFunction();
      const kinds = { strict: { memoryMiB: 3000, sloMs: 30_000 }, 'best-effort': { memoryMiB: 3000 } };
      for (const [name, gpu] of Object.entries(kinds)) {
        await api.putAction(name, code, { kind: 'native:1', annotations: { gpu } });
      }
      // As much best effort as the small slice holds.
      const names = Array.from({ length: 8 }, (_, at) => (at % 3 === 1 ? 'best-effort' : 'strict'));
      const ids = await Promise.all(names.map((name) => api.submit(name, { deviceMs: 20 })));
      const records = await Promise.all(ids.map((id) => api.record(id)));
      expect(records.map(({ response }) => response.result)).toEqual(
        names.map(() => expect.objectContaining({ result: 0 })),
      );
      const isOnSmall = records.map((record) => (annotation(record, 'gpu') as JsonObject).slice === small);
      expect(isOnSmall).toEqual(names.map((name) => name === 'best-effort'));
    },
    caseMs,
  );
});
