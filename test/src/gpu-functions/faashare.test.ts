// Functions with several SLOs at once on two simulated GPUs, under policy faashare: records, queue, admission, limits,
// and learned data after a restart.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { GpuQueued, GpuRecord } from '@gpuwhisk/common/gpu';
import type { DecisionRecord } from '@gpuwhisk/common/gpu-decisions';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { FunctionPerformance } from '@gpuwhisk/controller/api/gpu-performance-views';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { runWsk } from '../cli/wsk-process.js';
import { annotation } from '../support/api-client.js';
import type { ApiActivation } from '../support/api-client.js';
import { compileGpuFunction } from './gpu-functions.js';
import { newSubject } from '../support/operator.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const flags = ['--gpus', 'sim:rtx3090x2', '--stem-cells', 'false', '--set', 'gpu.policy=faashare'];
const limits = ['--set', 'limits.concurrentGpuMemoryMiB=80000'];
const isHere = hasStandIn() && hasNative();
if (!isHere) console.info('No stand-in for a GPU is built here: policy faashare is not tested on a platform.');

(isHere ? describe : describe.skip)('policy faashare on two simulated GPUs', () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    platform = await startPlatform({ flags: [...flags, ...limits] });
  }, caseMs);
  afterAll(() => platform.stop(), caseMs);

  const gpuOf = (record: ApiActivation): GpuRecord => annotation(record, 'gpu') as unknown as GpuRecord;
  const put = (name: string, gpu: JsonObject): Promise<unknown> =>
    platform.api.putAction(name, compileGpuFunction(), { kind: 'native:1', annotations: { gpu } });
  const wsk = async (...args: string[]): Promise<string> =>
    (
      await runWsk(['--apihost', platform.url, '--auth', platform.auth, 'gpu', ...args], {
        directory: platform.dataDir,
      })
    ).stdout;

  test(
    'each gets a complete record, what waits is shown, and what was decided is known after a restart',
    async () => {
      const { api } = platform;
      await put('strict', { memoryMiB: 9000, mpsPercent: 50, sloMs: 60_000 });
      await put('loose', { memoryMiB: 9000, mpsPercent: 30, sloMs: 80_000 });
      await put('best-effort', { memoryMiB: 20_000 });
      const names = ['strict', 'loose', 'best-effort'];
      // Only runs in existing processes are measured.
      const measured = async (): Promise<boolean> => {
        for (const name of names) await api.invokeForResult(name, { deviceMs: 10 });
        const { body } = await api.request<FunctionPerformance[]>('GET', '../gpu/functions');
        return body.length === 3 && body.every(({ batches }) => batches[0]?.soloMs !== undefined);
      };
      await until('all are measured', measured, 60_000);
      const ids = await Promise.all(names.map((name) => api.submit(name, { deviceMs: 10, holdMs: 1000 })));
      const more = await Promise.all(names.map((name) => api.submit(name, { deviceMs: 10, holdMs: 1000 })));
      // The requests need more memory than the devices have.
      let shown: GpuQueued[] = [];
      await until('somebody waits', async () => {
        shown = (await api.request<GpuQueued[]>('GET', '../gpu/queue')).body;
        return shown.length > 0;
      });
      expect(await wsk('queue')).toMatch(/^ *# .*\n *1 +[0-9a-f]{32} +\/guest\//);
      for (const one of shown) expect(one).toMatchObject({ namespace: 'guest', memoryMiB: expect.any(Number) });
      const records = await Promise.all([...ids, ...more].map((id) => api.record(id)));
      for (const record of records) {
        expect(record.response.success).toBe(true);
        const { share, queueMs, predictedMs, actualMs, degradation = 0, start, device } = gpuOf(record);
        expect(device).toMatch(/^GPU-/);
        expect([0.1, 0.2, 0.3, 0.5, 0.7, 1]).toContain(share);
        expect(queueMs).toBeGreaterThanOrEqual(0);
        expect(predictedMs).toBeGreaterThan(0);
        expect(actualMs).toBeGreaterThan(0);
        expect(degradation).toBeGreaterThanOrEqual(0);
        expect(degradation).toBeLessThan(1);
        expect(['cold', 'prewarmed', 'injected', 'warm']).toContain(start);
      }
      expect(await wsk('functions')).toMatch(/^Function .*\n(\/guest\/.*\n){3}$/);
      const { dataDir } = platform;
      await platform.end('SIGTERM');
      platform = await startPlatform({ flags: [...flags, ...limits], dataDir });
      const [id = ''] = ids;
      const path = `../gpu/decisions?activation=${id}`;
      const { body } = await platform.api.request<DecisionRecord[]>('GET', path);
      expect(body.map(({ policy }) => policy)).toContain('faashare');
      expect(await wsk('explain', id)).toContain('faashare: placed');
      expect(await wsk('functions')).toContain('/guest/strict');
    },
    caseMs,
  );

  test(
    'who asks for more at once than the namespace may have is answered 429, with the limit by its name',
    async () => {
      const { api } = platform;
      await put('large', { memoryMiB: 21_000, gpus: 2 });
      const answers = await Promise.all(
        Array.from({ length: 3 }, () =>
          api.request<{ error?: string; activationId?: string }>('POST', '_/actions/large', { holdMs: 200 }),
        ),
      );
      const refused = answers.filter(({ status }) => status === 429);
      expect([answers.filter(({ status }) => status === 202).length, refused.length]).toEqual([1, 2]);
      const text =
        'Too many concurrent GPU requests in flight (count: 84000, allowed: 80000, limit: concurrentGpuMemory).';
      expect(refused.map(({ body }) => body.error)).toEqual([text, text]);
      const accepted = answers.find(({ status }) => status === 202)?.body.activationId ?? '';
      expect((await api.record(accepted)).response.success).toBe(true);
      await until('there is room again', async () => (await api.invoke('large', {})).status === 200);
    },
    caseMs,
  );

  test(
    'a namespace gets no more of a GPU than it may have, and of warm containers no more than it may keep',
    async () => {
      const limits = { maxGpuShare: 50, warmGpuContainers: 1, invocationsPerMinute: 100, concurrentInvocations: 10 };
      const api = await newSubject(platform, 'bounded', limits);
      const putBounded = (name: string, gpu: JsonObject): Promise<unknown> =>
        api.putAction(name, compileGpuFunction(), {
          kind: 'native:1',
          annotations: { gpu: { memoryMiB: 1000, ...gpu } },
        });
      await Promise.all([putBounded('one', {}), putBounded('two', {}), putBounded('most', { mpsPercent: 51 })]);
      const starts: string[] = [];
      for (const name of ['one', 'one', 'two', 'one']) {
        const { start, share } = gpuOf(await api.record((await api.invoke(name, { holdMs: 1 })).activationId));
        expect(share).toBe(0.5);
        starts.push(start === 'warm' ? start : 'loaded');
      }
      expect(starts).toEqual(['loaded', 'warm', 'loaded', 'loaded']);
      const answer = await api.request<{ error?: string }>('POST', '_/actions/most', {});
      const error = 'Too large a share of a GPU requested (requested: 70, allowed: 50, limit: maxGpuShare).';
      expect([answer.status, answer.body.error]).toEqual([429, error]);
      expect((await api.request('GET', '_/limits')).body).toMatchObject({ maxGpuShare: 50, warmGpuContainers: 1 });
    },
    caseMs,
  );

  test(
    'who has had GPUs for as many seconds of the minute as the namespace may is answered 429, also while it runs',
    async () => {
      const api = await newSubject(platform, 'thrifty', {
        gpuSecondsPerMinute: 1,
        invocationsPerMinute: 1000,
        concurrentInvocations: 100,
      });
      const gpu = { memoryMiB: 1000, mpsPercent: 50 };
      await api.putAction('half', compileGpuFunction(), { kind: 'native:1', annotations: { gpu } });
      expect((await api.invoke('half', { holdMs: 10 })).status).toBe(200);
      const id = await api.submit('half', { holdMs: 8000 });
      let answer: { status: number; body: { error?: string } } = { status: 0, body: {} };
      await until('its second is used up', async () => {
        await new Promise((resolve) => setTimeout(resolve, 200));
        answer = await api.request<{ error?: string }>('POST', '_/actions/half', { holdMs: 10 });
        return answer.status === 429;
      });
      expect(answer.body.error).toMatch(/^Too many GPU seconds in the last minute \(count: [1-4], allowed: 1\)\.$/);
      expect((await api.record(id)).response.success).toBe(true);
    },
    caseMs,
  );
});
