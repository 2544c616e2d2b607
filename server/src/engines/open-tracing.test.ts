import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { loadConfig, withoutSecrets } from '@gpuwhisk/common/config';
import { createLogger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { isTraced, openTracing } from './open-tracing.js';

const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };
const parts = {
  env: {},
  clock: systemClock,
  logger: createLogger({ level: 'silent' }),
  metrics: createMetrics(),
  process: 'controller0',
};

test('traces are off unless a collector is named', async () => {
  const none = loadConfig();
  expect(await openTracing({ ...parts, config: none })).toBeUndefined();
  expect(isTraced(none, collector)).toBe(true);
  expect(isTraced(none, { ...collector, OTEL_SDK_DISABLED: 'true' })).toBe(false);
  expect(isTraced(none, { ...collector, OTEL_TRACES_EXPORTER: 'none' })).toBe(false);
  expect(isTraced(loadConfig({ flags: { tracing: { url: 'https://collector/v1/traces' } } }), {})).toBe(true);
});

test("a collector's key is not shown", () => {
  const tracing = { url: 'https://me:secret@collector/v1/traces', headers: { 'x-key': 'secret' } };
  expect(JSON.stringify(withoutSecrets(loadConfig({ flags: { tracing } })))).not.toContain('secret');
});

test('a collector that never answers delays the end by two seconds at most, and no span', async () => {
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/v1/traces`;
  // The SDK goes on with its last export for as long.
  process.env.OTEL_EXPORTER_OTLP_TIMEOUT = '2500';
  const tracing = await openTracing({ ...parts, config: loadConfig({ flags: { tracing: { url } } }) });
  delete process.env.OTEL_EXPORTER_OTLP_TIMEOUT;
  const beganMs = performance.now();
  for (let spans = 0; spans < 5000; spans++) tracing?.tracer.start('one').end();
  const endedMs = performance.now();
  await tracing?.close();
  const closedMs = performance.now();
  silent.closeAllConnections();
  silent.close();
  expect(endedMs - beganMs).toBeLessThan(2000);
  expect(closedMs - endedMs).toBeLessThan(3000);
});
