// Instances of functions on simulated GPUs: launched ahead of requests, moved to other shares, retired.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ColdStartRecord, GpuRecord } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { annotation } from '../support/api-client.js';
import { newSubject } from '../support/operator.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const loadMs = 600;
const slowToLoad = `const until = Date.now() + ${loadMs};
while (Date.now() < until);
const loaded = process.hrtime.bigint();
let runs = 0;
async function main({ ms = 0 }) {
  await new Promise((done) => setTimeout(done, ms));
  return { pid: process.pid, runs: ++runs };
}`;

if (!hasStandIn()) console.info('No stand-in for a GPU is built here: launches of instances are not tested.');

interface FunctionView {
  container: string;
  action?: string;
  share: number;
  smRequest: number;
  smLimit: number;
  running: number;
}

interface DeviceView {
  uuid: string;
  functions: FunctionView[];
}

(hasStandIn() ? describe : describe.skip)('instances on two simulated GPUs', () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    const flags = ['--gpus', 'sim:rtx3090x2', '--stem-cells', 'false', '--set', 'gpu.tokens=true'];
    platform = await startPlatform({ flags });
  }, caseMs);
  afterAll(() => platform.stop(), caseMs);

  const devices = async (): Promise<DeviceView[]> =>
    (await platform.api.request<DeviceView[]>('GET', '../gpu/devices')).body;
  const instancesOf = async (action: string): Promise<(FunctionView & { on: string })[]> =>
    (await devices()).flatMap(({ uuid, functions }) =>
      functions.filter((one) => one.action === `/guest/${action}`).map((one) => ({ ...one, on: uuid })),
    );
  const put = (name: string, gpu: JsonObject): Promise<unknown> =>
    platform.api.putAction(name, slowToLoad, { annotations: { gpu } });

  test(
    'a launched instance has its code loaded, on the GPU that was named, and serves the first request at once',
    async () => {
      const { api } = platform;
      await put('ahead', { memoryMiB: 2000, mpsPercent: 30 });
      const [, second] = await devices();
      const on = second!.uuid;
      const launched = await api.request('POST', '../gpu/instances', { action: 'ahead', devices: [on] });
      expect([launched.status, launched.body]).toEqual([200, { action: '/guest/ahead', device: on, share: 0.3 }]);
      await until('it idles', async () => (await instancesOf('ahead'))[0]?.running === 0);
      expect(await instancesOf('ahead')).toMatchObject([{ on, share: 0.3 }]);
      const record = await api.record(await api.submit('ahead', {}));
      expect(record.response.result).toMatchObject({ runs: 1 });
      expect(annotation(record, 'initTime')).toBeUndefined();
      expect(annotation(record, 'gpu') as unknown as GpuRecord).toMatchObject({ device: on, start: 'prewarmed' });
      // A launch is not a run, so it has no record.
      const { body } = await api.request<unknown[]>('GET', '_/activations?name=ahead');
      expect(body).toHaveLength(1);
    },
    caseMs,
  );

  test(
    'a loaded model serves without a cold start, is loaded once, and is gone after its deletion',
    async () => {
      const { api } = platform;
      await put('model', { memoryMiB: 2000, mpsPercent: 30 });
      const path = '../gpu/functions/model/model';
      type Model = { state: string; instances: { state: string; container: string; since: number; gpus: string[] }[] };
      const startOf = async (): Promise<string> => {
        const record = await api.record(await api.submit('model', {}));
        return (annotation(record, 'gpu') as unknown as GpuRecord).start;
      };
      const before = Date.now();
      const loaded = await api.request<Model>('POST', path);
      expect([loaded.status, loaded.body]).toMatchObject([200, { state: 'loaded', instances: [{ state: 'idle' }] }]);
      const [{ container, since, gpus } = { container: '', since: 0, gpus: [] }] = loaded.body.instances;
      expect(since).toBeGreaterThan(before - 1000);
      expect((await devices()).map(({ uuid }) => uuid)).toContain(gpus[0]);
      expect((await api.request<Model>('POST', path)).body.instances).toMatchObject([{ container }]);
      expect(await startOf()).toBe('prewarmed');
      expect(await startOf()).toBe('warm');
      const deleted = await api.request<Model>('DELETE', path);
      expect([deleted.status, deleted.body]).toMatchObject([200, { instances: [{ container, state: 'draining' }] }]);
      const modelNow = async (): Promise<Model> => (await api.request<Model>('GET', path)).body;
      await until('it is gone', async () => (await modelNow()).instances.length === 0);
      expect((await modelNow()).state).toBe('unloaded');
      expect(await startOf()).toBe('cold');
    },
    caseMs,
  );

  test(
    'the record of a start that loaded code has the parts of it, and the metrics count them',
    async () => {
      const { api } = platform;
      const [codeMs, entryMs] = [loadMs, 250];
      const code = `${slowToLoad}
const load = () => new Promise((done) => setTimeout(done, ${entryMs}));`;
      const annotations = { gpu: { memoryMiB: 2000, mpsPercent: 30 }, warm: { entry: 'load' } };
      await api.putAction('parts', code, { annotations });
      const record = await api.record(await api.submit('parts', {}));
      const { totalMs = 0, ...parts } = annotation(record, 'coldStart') as unknown as Partial<ColdStartRecord>;
      expect(Object.keys(parts).sort()).toEqual(['allocMs', 'codeMs', 'modelMs', 'queueMs', 'runtimeMs']);
      expect(parts.codeMs).toBeGreaterThanOrEqual(codeMs - 1);
      expect(parts.modelMs).toBeGreaterThanOrEqual(entryMs - 1);
      expect(parts.allocMs).toBeGreaterThan(0);
      expect(parts.runtimeMs).toBeGreaterThan(0);
      const sumMs = Object.values(parts).reduce((sum, ms) => sum + ms, 0);
      // Each is rounded.
      expect(totalMs).toBeGreaterThanOrEqual(sumMs - 5);
      expect(totalMs).toBe(Number(annotation(record, 'waitTime')) + Number(annotation(record, 'initTime')));
      const warm = await api.record(await api.submit('parts', {}));
      expect(annotation(warm, 'coldStart')).toBeUndefined();
      const text = await (await fetch(new URL('/metrics', platform.url))).text();
      expect(text).toMatch(/gpuwhisk_gpu_cold_start_seconds_bucket\{le="0.1",part="model"\} 0/);
      for (const part of ['total', 'alloc']) {
        expect(text).toMatch(new RegExp(`gpuwhisk_gpu_cold_start_seconds_count\\{part="${part}"\\} [1-9]`));
      }
    },
    caseMs,
  );

  test(
    'each launch makes an instance, whether or not one idles; retired ones end, one that runs when it has ended',
    async () => {
      const { api } = platform;
      await put('several', { memoryMiB: 2000, mpsPercent: 30 });
      for (let count = 1; count <= 2; count += 1) {
        expect((await api.request('POST', '../gpu/instances', { action: '/_/several' })).status).toBe(200);
      }
      await until('both are shown', async () => (await instancesOf('several')).length === 2);
      const id = await api.submit('several', { ms: 1500 });
      await until('one runs', async () => (await instancesOf('several')).some(({ running }) => running === 1));
      for (const { container } of await instancesOf('several')) {
        expect((await api.request('DELETE', `../gpu/instances/${container}`)).status).toBe(200);
      }
      await until('the idle one has ended', async () => (await instancesOf('several')).length === 1);
      expect((await api.record(id)).response.result).toMatchObject({ runs: 1 });
      await until('the other one, too', async () => (await instancesOf('several')).length === 0);
    },
    caseMs,
  );

  test(
    'a run that is stopped to make way is recorded as such, or runs again where its action is idempotent',
    async () => {
      const { api } = platform;
      await put('once', { memoryMiB: 2000, mpsPercent: 30 });
      const annotations = { idempotent: true, gpu: { memoryMiB: 2000, mpsPercent: 30 } };
      await api.putAction('again', slowToLoad, { annotations });
      const stopped = async (name: string): Promise<string> => {
        const id = await api.submit(name, { ms: 4000 });
        await until('it runs', async () => (await instancesOf(name)).some(({ running }) => running === 1));
        const [{ container } = { container: '' }] = await instancesOf(name);
        const path = `../gpu/instances/${container}`;
        expect((await api.request('DELETE', `${path}?graceMs=-1`)).status).toBe(400);
        expect((await api.request('DELETE', `${path}?graceMs=200`)).status).toBe(200);
        return id;
      };
      const [once, again] = [await stopped('once'), await stopped('again')];
      const record = await api.record(once);
      expect(record.response).toMatchObject({ success: false, result: { error: expect.stringMatching(/gave way/) } });
      expect((await api.record(again)).response).toMatchObject({ success: true, result: { runs: 1 } });
    },
    caseMs,
  );

  test(
    'the share of an instance is moved while it idles, and stays where it was moved when it runs',
    async () => {
      const { api } = platform;
      await put('moved', { memoryMiB: 2000, mpsPercent: 50 });
      await api.request('POST', '../gpu/instances', { action: 'moved' });
      await until('it is shown', async () => (await instancesOf('moved')).length === 1);
      const [{ container } = { container: '' }] = await instancesOf('moved');
      const path = `../gpu/instances/${container}`;
      expect((await api.request('PUT', path, { smRequest: 0.4, smLimit: 0.3 })).status).toBe(400);
      const share = { smRequest: 0.1, smLimit: 0.2 };
      expect(await api.request('PUT', path, share)).toMatchObject({ status: 200, body: share });
      const isMoved = async (): Promise<boolean> => (await instancesOf('moved'))[0]?.smLimit === 0.2;
      await until('it is moved', isMoved);
      await api.record(await api.submit('moved', {}));
      expect((await instancesOf('moved'))[0]).toMatchObject({ container, share: 0.5, ...share });
    },
    caseMs,
  );

  test(
    'what cannot be launched or changed is refused with the reason',
    async () => {
      const { api } = platform;
      await put('refused', { memoryMiB: 2000 });
      await api.putAction('plain', 'function main() {}');
      await put('broken', { memoryMiB: 2000 });
      await api.putAction('broken', 'throw new Error("no")', { annotations: { gpu: { memoryMiB: 2000 } } });
      const launch = async (body: JsonObject): Promise<unknown[]> => {
        const { status, body: answer } = await api.request<{ error: string }>('POST', '../gpu/instances', body);
        return [status, answer.error];
      };
      expect(await launch({ action: 'plain' })).toEqual([400, expect.stringContaining('it needs no GPU')]);
      expect(await launch({ action: 'missing' })).toEqual([404, 'The requested resource does not exist.']);
      expect(await launch({ action: 'refused', mpsPercent: 31 })).toEqual([
        400,
        expect.stringContaining("'mpsPercent' must be one of 10, 20"),
      ]);
      expect(await launch({ action: 'refused', devices: ['GPU-none'] })).toEqual([
        503,
        expect.stringContaining('The instance was not launched'),
      ]);
      expect(await launch({ action: 'broken' })).toEqual([
        503,
        expect.stringContaining('The instance was not launched'),
      ]);
      expect((await api.request('DELETE', '../gpu/instances/none')).status).toBe(404);
      // Another namespace's instance is not found.
      expect((await api.request('POST', '../gpu/instances', { action: 'refused' })).status).toBe(200);
      await until('it is shown', async () => (await instancesOf('refused')).length === 1);
      const [own] = await instancesOf('refused');
      const limits = { invocationsPerMinute: 100, concurrentInvocations: 10 };
      const other = await newSubject(platform, 'other', limits);
      expect((await other.request('DELETE', `../gpu/instances/${own!.container}`)).status).toBe(404);
      expect((await instancesOf('refused'))[0]?.container).toBe(own!.container);
      const modest = await newSubject(platform, 'modest', { ...limits, maxGpuShare: 30, warmGpuContainers: 0 });
      await modest.putAction('bounded', slowToLoad, { annotations: { gpu: { memoryMiB: 1000, mpsPercent: 30 } } });
      const over = await modest.request('POST', '../gpu/instances', { action: 'bounded', mpsPercent: 50 });
      expect(over).toMatchObject({ status: 429, body: { error: expect.stringContaining('maxGpuShare') } });
      const idle = await modest.request('POST', '../gpu/instances', { action: 'bounded' });
      expect(idle).toMatchObject({
        status: 503,
        body: { error: expect.stringContaining('its maximum of idle instances') },
      });
    },
    caseMs,
  );
});
