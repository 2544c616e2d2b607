// A function that uses two simulated GPUs together.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { annotation } from '../support/api-client.js';
import { hasPython } from '../support/machine.js';
import { compileGpuFunction, devicesOf } from './gpu-functions.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const isHere = hasStandIn() && hasNative();
const kind = 'native:1';
const rising = (one: number, other: number): number => one - other;

(isHere ? describe : describe.skip)('a function of two simulated GPUs', () => {
  let platform: RunningPlatform;
  let code: Buffer;
  beforeAll(async () => {
    code = compileGpuFunction();
    const flags = ['--gpus', 'sim:a100-40x2', '--stem-cells', 'false', '--set', 'gpu.policy=dilu'];
    platform = await startPlatform({ flags });
    const both = { memoryMiB: 2000, mpsPercent: 50, gpus: 2 };
    await platform.api.putAction('both', code, { kind, annotations: { gpu: both } });
    await platform.api.putAction('one', code, { kind, annotations: { gpu: { memoryMiB: 2000, mpsPercent: 50 } } });
  }, caseMs);
  afterAll(() => platform.stop(), caseMs);

  const sees = { result: 0, alloc: 0, devices: 2, sms: 54, others: 1 };
  const run = async (name: string, payload: JsonObject): Promise<JsonObject> => {
    const { status, body } = await platform.api.invokeForResult(name, payload);
    if (status !== 200) throw new Error(`${name} was answered ${status}: ${JSON.stringify(body)}`);
    return body;
  };

  test(
    'has its share and memory on both, and both show it; a warm process of both serves it again',
    async () => {
      const running = platform.api.run('both', { others: 1, allocMiB: 1500, holdMs: 4000 });
      await until(
        'both devices show the run and its memory',
        async () =>
          (await devicesOf(platform)).every(
            ({ usedMemoryMiB, functions }) =>
              usedMemoryMiB >= 1500 &&
              functions.some(({ action, running: runs }) => action === '/guest/both' && runs === 1),
          ),
        30_000,
      );
      const { record } = await running;
      expect(record.response.result).toMatchObject(sees);
      const again = await platform.api.run('both', { others: 1 });
      expect(again.record.response.result).toMatchObject(sees);
      expect(annotation(again.record, 'gpu')).toMatchObject({ start: 'warm', share: 0.5 });
      // The cap applies on each device.
      expect(await run('both', { others: 1, allocMiB: 2100 })).toMatchObject({ result: 0, alloc: 2, others: 0 });
    },
    caseMs,
  );

  test(
    'functions of one device come after it, and it after them',
    async () => {
      await run('both', { others: 1 });
      const alone = { result: 0, devices: 1, sms: 54, others: 0 };
      for (const one of await Promise.all([run('one', { deviceMs: 50 }), run('one', { deviceMs: 50 })])) {
        expect(one).toMatchObject(alone);
      }
      const together = await Promise.all([run('one', { holdMs: 500 }), run('both', { others: 1, allocMiB: 1000 })]);
      expect(together).toMatchObject([alone, sees]);
    },
    caseMs,
  );

  test(
    'a function too large for one device spans both, and knows its part of each',
    async () => {
      const { api } = platform;
      const gpu = { memoryMiB: 60_000, spans: 2 };
      await api.putAction('large', code, { kind, annotations: { gpu } });
      // 95 % of a device may be given away: the rest is on the other one.
      const [most, rest] = [38_912, 60_000 - 38_912];
      const fits = await api.run('large', { others: 1, allocMiB: rest - 1000, holdMs: 2000 });
      expect(fits.record.response.result).toMatchObject({ result: 0, alloc: 0, devices: 2, others: 1 });
      const instances = (await devicesOf(platform)).flatMap(({ functions }) => functions);
      const shown = instances.filter(({ action }) => action === '/guest/large').map(({ memoryMiB }) => memoryMiB);
      expect(shown.sort(rising)).toEqual([rest, most]);
      // The warm process serves the next request; on the device with the lesser part it can hold no more than that.
      const again = await api.run('large', { others: 1, allocMiB: rest + 1000 });
      expect(annotation(again.record, 'gpu')).toMatchObject({ start: 'warm' });
      const { alloc, others } = again.record.response.result as { alloc: number; others: number };
      expect([alloc === 0, others === 1]).toContain(false);
      if (!hasPython) return;
      const told = 'import os\ndef main(args):\n    return {"memory": os.environ["GPUWHISK_MEMORY_MIB"]}\n';
      await api.putAction('told', told, { kind: 'python:default', annotations: { gpu } });
      const { memory } = (await api.run('told', {})).record.response.result as { memory: string };
      expect(memory.split(',').map(Number).sort(rising)).toEqual([rest, most]);
    },
    caseMs,
  );

  test(
    'more devices than there are, alike, are refused when the action is written',
    async () => {
      const gpu = { memoryMiB: 2000, gpus: 3 };
      const { status, body } = await platform.api.request<{ error: string }>('PUT', '_/actions/three', {
        exec: { kind, code: code.toString('base64'), binary: true },
        annotations: [{ key: 'gpu', value: gpu }],
      });
      expect([status, body.error]).toEqual([400, expect.stringContaining("'gpus' is 3")]);
    },
    caseMs,
  );
});
