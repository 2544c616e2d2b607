// Policy least-loaded on two simulated GPUs: places of functions, waiting order, and how many instances a namespace
// keeps.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { GpuQueued, GpuRecord } from '@gpuwhisk/common/gpu';
import type { DecisionRecord } from '@gpuwhisk/common/gpu-decisions';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { annotation } from '../support/api-client.js';
import type { ApiActivation, ApiClient } from '../support/api-client.js';
import { newSubject } from '../support/operator.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const flags = ['--gpus', 'sim:rtx3090x2', '--stem-cells', 'false', '--set', 'gpu.policy=least-loaded'];
const sleeper = 'async function main({ ms }) { await new Promise((done) => setTimeout(done, ms)); return {}; }';
if (!hasStandIn())
  console.info('No stand-in for a GPU is built here: policy least-loaded is not tested on a platform.');

(hasStandIn() ? describe : describe.skip)('policy least-loaded on two simulated GPUs', () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    platform = await startPlatform({ flags });
  }, caseMs);
  afterAll(() => platform.stop(), caseMs);

  const gpuOf = (record: ApiActivation): GpuRecord => annotation(record, 'gpu') as unknown as GpuRecord;
  const put = (api: ApiClient, name: string, gpu: JsonObject): Promise<unknown> =>
    api.putAction(name, sleeper, { annotations: { gpu } });

  test(
    'work goes to the device with less given away, and who waits goes on by deadline',
    async () => {
      const { api } = platform;
      await put(api, 'half', { memoryMiB: 12_000, mpsPercent: 50 });
      await put(api, 'late', { memoryMiB: 12_000, mpsPercent: 50, sloMs: 80_000 });
      await put(api, 'soon', { memoryMiB: 12_000, mpsPercent: 50, sloMs: 20_000 });
      const held = [await api.submit('half', { ms: 4000 }), await api.submit('half', { ms: 4000 })];
      const waiting = [await api.submit('late', { ms: 10 }), await api.submit('soon', { ms: 10 })];
      let queued: GpuQueued[] = [];
      await until('both wait', async () => {
        queued = (await api.request<GpuQueued[]>('GET', '../gpu/queue')).body;
        return queued.length === 2;
      });
      expect(queued.map(({ action }) => action)).toEqual(['/guest/soon', '/guest/late']);
      const records = await Promise.all([...held, ...waiting].map((id) => api.record(id)));
      expect(records.map(({ response }) => response.success)).toEqual([true, true, true, true]);
      expect(new Set(records.slice(0, 2).map((record) => gpuOf(record).device)).size).toBe(2);
      expect(records.map((record) => gpuOf(record).share)).toEqual([0.5, 0.5, 0.5, 0.5]);
      const { body } = await api.request<DecisionRecord[]>('GET', `../gpu/decisions?activation=${held[0] ?? ''}`);
      expect(new Set(body.map(({ policy }) => policy))).toEqual(new Set(['least-loaded']));
    },
    caseMs,
  );

  test(
    'a namespace with limits of a share and of warm containers gets no more, and is told so',
    async () => {
      const limits = { maxGpuShare: 30, warmGpuContainers: 0, invocationsPerMinute: 100, concurrentInvocations: 10 };
      const api = await newSubject(platform, 'modest', limits);
      expect((await api.request('GET', '_/limits')).body).toMatchObject({ maxGpuShare: 30, warmGpuContainers: 0 });
      await put(api, 'any', { memoryMiB: 1000 });
      for (let call = 0; call < 2; call += 1) {
        const { activationId } = await api.invoke('any', { ms: 1 });
        expect(gpuOf(await api.record(activationId))).toMatchObject({ share: 0.3, start: 'cold' });
      }
      const namespaces = async (): Promise<unknown[]> => {
        const { body } = await api.request<{ functions: { action: string }[] }[]>('GET', '../gpu/devices');
        return body.flatMap(({ functions }) => functions).filter(({ action }) => action === '/modest/any');
      };
      await until('nothing of it is there', async () => (await namespaces()).length === 0);
      await put(api, 'large', { memoryMiB: 1000, mpsPercent: 50 });
      const { status, body } = await api.request<{ error: string }>('POST', '_/actions/large', { ms: 1 });
      const error = 'Too large a share of a GPU requested (requested: 50, allowed: 30, limit: maxGpuShare).';
      expect([status, body.error]).toEqual([429, error]);
    },
    caseMs,
  );
});
