// Limits of namespaces on the running platform: OpenWhisk's throttles in flight, records that are not stored, blocked
// subjects; administered with the operator's key.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ApiClient } from './api-client.js';
import { startPlatform, until } from './running-platform.js';
import type { RunningPlatform } from './running-platform.js';

const operatorKey =
  '789c46b1-71f6-4ed5-8c54-816aa4f8c502:abczO3xZCLrMN6v2BKK1dXYFpXlPkccOFqm12CdAsMgRU4VrNZ9lyGVCGuMDGIwP';
const slow = 'async function main() { await new Promise((done) => setTimeout(done, 300)); return {}; }';

let platform: RunningPlatform;
beforeAll(async () => {
  const flags = ['--limits', 'openwhisk', '--stem-cells', 'false', '--set', 'limits.concurrentInvocations=3'];
  platform = await startPlatform({ flags });
});
afterAll(() => platform.stop());

async function admin(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(`${platform.url}/api/v1/admin/${path}`, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(operatorKey).toString('base64')}`,
      'content-type': 'application/json',
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  expect([method, path, response.status]).toEqual([method, path, 200]);
  return (await response.json()) as Record<string, unknown>;
}

async function newSubject(name: string, limits: Record<string, unknown>): Promise<ApiClient> {
  const { uuid, key } = await admin('PUT', `subjects/${name}`, {});
  await admin('PUT', `limits/${name}`, limits);
  return new ApiClient(platform.url, `${String(uuid)}:${String(key)}`);
}

test('activations count as in flight until they have completed, however many come at once', async () => {
  const { api } = platform;
  await api.putAction('slow', slow, { limits: { memory: 128 } });
  const answers = await Promise.all(
    Array.from({ length: 10 }, () =>
      api.request<{ activationId: string; error: string }>('POST', '_/actions/slow', {}),
    ),
  );
  const accepted = answers.filter(({ status }) => status === 202);
  const refused = answers.filter(({ status }) => status === 429);
  expect([accepted.length, refused.length]).toEqual([3, 7]);
  for (const { body } of refused) {
    expect(body.error).toMatch(/^Too many concurrent requests in flight \(count: \d, allowed: 3\)\.$/);
  }
  for (const { body } of accepted) expect((await api.record(body.activationId)).response.success).toBe(true);
  await until('there is room again', async () => (await api.invoke('slow')).status === 200);
});

test('a namespace that stores no activations has none, and its callers get their results', async () => {
  const api = await newSubject('forgetful', { storeActivations: false });
  await api.putAction('hello', 'function main() { return { hello: 1 }; }', { limits: { memory: 128 } });
  const blocking = await api.invoke('hello');
  expect(blocking.status).toBe(200);
  expect((await api.request('POST', '_/actions/hello', {})).status).toBe(202);
  const { activationId } = blocking.body as { activationId: string };
  // An activation of the guest that began later is recorded by now.
  await platform.api.putAction('after', 'function main() { return {}; }', { limits: { memory: 128 } });
  const later = await platform.api.invoke('after');
  await platform.api.record((later.body as { activationId: string }).activationId);
  expect((await api.request('GET', `_/activations/${activationId}`)).status).toBe(404);
  expect((await api.request('GET', '_/activations')).body).toEqual([]);
});

test('a blocked subject is refused at once, and let in at once when it is unblocked', async () => {
  const api = await newSubject('blocked', {});
  expect((await api.request('GET', '_/actions')).status).toBe(200);
  await admin('POST', 'subjects/blocked/block');
  expect((await api.request('GET', '_/actions')).status).toBe(401);
  await admin('POST', 'subjects/blocked/unblock');
  expect((await api.request('GET', '_/actions')).status).toBe(200);
});
