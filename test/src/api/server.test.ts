import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startApi } from './harness.js';
import type { Api } from './harness.js';

let api: Api;
let unhealthy: Api;
beforeAll(async () => {
  api = await startApi({ limits: { invocationsPerMinute: 60, firesPerMinute: 60 } });
  unhealthy = await startApi({ health: { 'invoker0/0': 'up', 'invoker1/1': 'down' } });
});
afterAll(async () => {
  await api.close();
  await unhealthy.close();
});

const get = (path: string, from: Api = api): ReturnType<Api['request']> => from.request('GET', path, { as: null });

test('GET / tells limits and runtimes', async () => {
  const reply = await get('/');
  expect(reply.status).toBe(200);
  expect(reply.headers).toMatchObject({
    'content-type': 'application/json',
    'access-control-allow-methods': 'OPTIONS, GET, POST',
  });
  const mebibyte = 1048576;
  const bounds = {
    min_action_duration: 100,
    max_action_duration: 300000,
    min_action_memory: 128 * mebibyte,
    max_action_memory: 512 * mebibyte,
    min_action_logs: 0,
    max_action_logs: 10 * mebibyte,
  };
  expect(reply.json).toMatchObject({
    description: 'OpenWhisk',
    support: { github: 'https://github.com/apache/openwhisk/issues', slack: 'http://slack.openwhisk.org' },
    api_paths: ['/api/v1'],
    limits: {
      actions_per_minute: 60,
      triggers_per_minute: 60,
      concurrent_actions: 30,
      sequence_length: 50,
      ...bounds,
      ...Object.fromEntries(Object.entries(bounds).map(([name, value]) => [`default_${name}`, value])),
    },
    runtimes: {
      nodejs: [
        {
          kind: 'nodejs:20',
          image: 'openwhisk/action-nodejs-v20:nightly',
          deprecated: false,
          default: true,
          attached: true,
          requireMain: false,
        },
        { kind: 'nodejs:6', deprecated: true, default: false },
      ],
      swift: [{ kind: 'swift:5.3', attached: false }],
      java: [{ kind: 'java:8', requireMain: true }],
    },
  });
});

test('GET /api/v1 tells version and build', async () => {
  for (const path of ['/api/v1', '/api/v1/']) {
    const reply = await get(path);
    expect(reply.json).toEqual({
      description: 'OpenWhisk API',
      api_version: '1.0.0',
      api_version_path: 'v1',
      build: '2026-01-01T00:00:00Z',
      buildno: 'test',
      swagger_paths: { ui: '/docs', 'api-docs': '/api-docs' },
    });
    expect(reply.headers['access-control-allow-methods']).toBe('GET, DELETE, POST, PUT, HEAD');
  }
});

test('GET /ping', async () => {
  const reply = await get('/ping');
  expect([reply.status, reply.text, reply.headers['content-type']]).toEqual([200, 'pong', 'text/plain; charset=UTF-8']);
  expect((await api.request('GET', '/ping', { as: null, headers: { accept: 'text/plain' } })).status).toBe(200);
});

test('GET /invokers', async () => {
  expect((await get('/invokers')).json).toEqual({ 'invoker0/0': 'up' });
  expect((await get('/invokers/healthy/count', unhealthy)).json).toBe(1);
  const ready = await get('/invokers/ready');
  expect([ready.status, ready.json]).toEqual([200, { healthy: '1/1' }]);
  const unready = await get('/invokers/ready', unhealthy);
  expect([unready.status, unready.json]).toEqual([500, { unhealthy: '1/2' }]);
});

test('GET /metrics', async () => {
  api.metrics.activationEnded(
    { namespace: 'alice', name: 'hello', kind: 'nodejs:20', limits: { memory: 256 } },
    { startMs: 1000, endMs: 1500, waitMs: 20, initMs: 100 },
    { statusCode: 0 },
  );
  const reply = await get('/metrics');
  expect(reply.headers['content-type']).toContain('text/plain; version=0.0.4');
  expect(reply.text).toContain('openwhisk_action_activations_total');
});
