// Requests of a GPU function that run as one, with the example for it.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { annotation } from './api-client.js';
import { hasPython } from './machine.js';
import { startPlatform } from './running-platform.js';
import type { RunningPlatform } from './running-platform.js';

const example = readFileSync(fileURLToPath(new URL('../../../examples/gpu/classify.py', import.meta.url)), 'utf8');
const requests = 40;

(hasStandIn() && hasPython ? describe : describe.skip)('requests of a GPU function', () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    platform = await startPlatform({ flags: ['--gpus', 'sim:a100-40'] });
  });
  afterAll(() => platform.stop());

  test('that wait for it run as one, and each has its own result and record', async () => {
    const { api } = platform;
    const gpu = { memoryMiB: 2048, mpsPercent: 100, batch: 8 };
    await api.putAction('classify', example, { kind: 'python:default', annotations: { gpu } });
    await api.invoke('classify');
    const answers = await Promise.all(Array.from({ length: requests }, () => api.invoke('classify', { pictures: 2 })));
    const records = await Promise.all(answers.map(({ activationId }) => api.record(activationId)));
    expect(new Set(records.map(({ activationId }) => activationId)).size).toBe(requests);
    const sizes = records.map((record) => {
      const { batch = 1 } = annotation(record, 'gpu') as { batch?: number };
      expect(record.response.result).toMatchObject({ model: 'resnet50', batch: 2 * batch });
      return batch;
    });
    expect(Math.max(...sizes)).toBeGreaterThan(1);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(8);
  });
});
