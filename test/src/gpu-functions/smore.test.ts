// Functions beside workloads under policy `smore`, on simulated GPUs.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { DegradationsView } from '@gpuwhisk/controller/api/gpu-performance-views';
import { annotation } from '../support/api-client.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { compileGpuFunction, devicesOf } from './gpu-functions.js';

const caseMs = 120_000;
const soonMs = 30_000;
const isHere = hasStandIn() && hasNative();

(isHere ? describe : describe.skip)('functions beside workloads', () => {
  let platform: RunningPlatform;
  const processes: ChildProcess[] = [];
  const workloads: string[] = [];

  beforeAll(async () => {
    const settings = ['--set', 'gpu.policy=smore', '--set', 'gpu.search.idleMs=500'];
    platform = await startPlatform({ flags: ['--gpus', 'sim:a100-40x2', ...settings] });
    const put = (name: string, smUtil: number): Promise<unknown> => {
      const gpu = { memoryMiB: 1000, features: { smUtil } };
      return platform.api.putAction(name, compileGpuFunction(), { kind: 'native:1', annotations: { gpu } });
    };
    await put('small', 0.3);
    await put('large', 0.8);
  }, caseMs);
  afterEach(async () => {
    for (const id of workloads.splice(0)) await operator('DELETE', `../gpu/workloads/${id}`);
    for (const one of processes.splice(0)) one.kill('SIGKILL');
  });
  afterAll(() => platform.stop(), caseMs);

  const operator = (method: string, path: string, body?: JsonObject) =>
    platform.api.as(platform.operatorAuth).request(method, path, body);
  const uuidOf = async (at: number): Promise<string> => (await devicesOf(platform))[at]!.uuid;

  async function register(device: number, fields: JsonObject): Promise<string> {
    const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
    processes.push(child);
    const body = { name: 'training', device: await uuidOf(device), pid: child.pid!, ...fields };
    const { body: answer, status } = await operator('POST', '../gpu/workloads', body);
    expect([status, answer]).toMatchObject([200, { name: 'training' }]);
    const { id } = answer as { id: string };
    workloads.push(id);
    return id;
  }
  const report = (id: string, rate: number) => operator('PUT', `../gpu/workloads/${id}`, { rate });

  test(
    'a function is put where both are predicted to keep their bounds, and waits where there is no such place',
    async () => {
      const half = await register(0, { features: { smUtil: 0.5 }, maxDegradation: 0.1 });
      await register(1, { features: { smUtil: 1 }, maxDegradation: 0.1 });
      const { record } = await platform.api.run('small', { deviceMs: 50 });
      expect((annotation(record, 'gpu') as JsonObject).device).toBe(await uuidOf(0));
      const waiting = platform.api.run('large', { deviceMs: 50 });
      const reasons = async (): Promise<string[]> => {
        const { body } = await operator('GET', '../gpu/queue');
        const queued = body as unknown as { rejected?: { reason: string }[] }[];
        return queued.flatMap(({ rejected = [] }) => rejected.map((one) => one.reason));
      };
      const reason = 'a workload would become slower there than it tolerates';
      await until('it waits', async () => (await reasons()).filter((one) => one === reason).length === 2, soonMs);
      await operator('DELETE', `../gpu/workloads/${half}`);
      const ran = (await waiting).record;
      expect(ran.response.result).toMatchObject({ result: 0 });
      expect((annotation(ran, 'gpu') as JsonObject).device).toBe(await uuidOf(0));
    },
    caseMs,
  );

  test(
    'a function gives way to a workload that is slower than it tolerates after all',
    async () => {
      await register(1, { features: { smUtil: 1 }, maxDegradation: 0.1 });
      const id = await register(0, { features: { smUtil: 0.5 }, maxDegradation: 0.1, baselineRate: 10 });
      await report(id, 10);
      let rate = 10;
      const reporting = setInterval(() => void report(id, rate), 300);
      try {
        const long = platform.api.run('small', { holdMs: 60_000 });
        await until(
          'it runs',
          async () => (await devicesOf(platform))[0]!.functions.some(({ running }) => running > 0),
          soonMs,
        );
        rate = 5;
        const from = Date.now();
        const { record } = await long;
        expect(Date.now() - from).toBeLessThan(20_000);
        expect(record.response.success).toBe(false);
        // Nothing is put there until it is well again.
        const next = platform.api.run('small', { deviceMs: 50 });
        const state = await Promise.race([
          next.then(() => 'ran'),
          new Promise((resolve) => setTimeout(resolve, 1500, 'waits')),
        ]);
        expect(state).toBe('waits');
        rate = 10;
        expect((await next).record.response.result).toMatchObject({ result: 0 });
      } finally {
        clearInterval(reporting);
      }
    },
    caseMs,
  );

  test(
    'pairs of functions with samples are measured while a GPU idles, until a model of them predicts',
    async () => {
      const code = compileGpuFunction();
      const names = ['p1', 'p2', 'p3', 'p4', 'p5', 'p6'];
      for (const [at, name] of names.entries()) {
        // They claim to fill the GPU, and leave it idle for most of their time.
        const sample = { deviceMs: 10 * (at + 1), holdMs: 150 };
        const gpu = { memoryMiB: 1000, sample, features: { smUtil: 0.9 } };
        await platform.api.putAction(name, code, { kind: 'native:1', annotations: { gpu, idempotent: true } });
        await platform.api.run(name, sample);
      }
      const degradations = async (): Promise<DegradationsView> =>
        (await operator('GET', '../gpu/degradations')).body as unknown as DegradationsView;
      // Runs beside workloads are of other kinds.
      const ofFunctions = ({ models }: DegradationsView): DegradationsView['models'][number] | undefined =>
        models.find(({ victim, neighbour }) => victim === 'function' && neighbour === 'function');
      try {
        const isDone = (view: DegradationsView): boolean =>
          ofFunctions(view)?.predictedBy === 'model' && view.measurements?.measured === 13;
        await until('a model of 13 pairs', async () => isDone(await degradations()), 90_000);
      } catch (error) {
        const found = JSON.stringify(await degradations());
        throw new Error(`${String(error)}; there is ${found}\n${platform.output()}`, { cause: error });
      }
      const shown = await degradations();
      const { measurements, drifts } = shown;
      const trained = ofFunctions(shown);
      expect(trained).toMatchObject({ pairs: 26, version: 1 });
      const { model, figures } = trained!.errors!;
      expect(model.rmsle).toBeLessThan(figures.rmsle);
      expect(measurements).toMatchObject({ functions: 6, chosen: 13 });
      expect(drifts).toEqual([]);
    },
    caseMs,
  );
});
