import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { gpuMetrics } from './gpu-metrics.js';

test('changes of the lease are counted, renewals are not', async () => {
  const registry = new Registry();
  const metrics = gpuMetrics(registry, { waiting: () => 0, epoch: () => undefined });
  for (const epoch of [undefined, 3, 3, undefined, undefined, 5, 6]) metrics.leased(epoch);
  const text = await registry.getSingleMetricAsString('gpuwhisk_gpu_decider_changes_total');
  expect(text).toContain('gpuwhisk_gpu_decider_changes_total{change="got"} 3');
  expect(text).toContain('gpuwhisk_gpu_decider_changes_total{change="lost"} 2');
});
