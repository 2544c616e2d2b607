// Limits of namespaces on the running platform: OpenWhisk's throttles in flight, records that are not stored, and
// blocked subjects. Limits are administered with the operator's key.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { administer, newSubject } from '../support/operator.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const slow = 'async function main() { await new Promise((done) => setTimeout(done, 300)); return {}; }';

let platform: RunningPlatform;
beforeAll(async () => {
  const flags = ['--limits', 'openwhisk', '--stem-cells', 'false', '--set', 'limits.concurrentInvocations=3'];
  platform = await startPlatform({ flags });
});
afterAll(() => platform.stop());

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
    expect(body.error).toMatch(
      /^Too many concurrent requests in flight \(count: \d, allowed: 3\)\. \(.*: (limits\.)?concurrentInvocations\)$/,
    );
  }
  for (const { body } of accepted) expect((await api.record(body.activationId)).response.success).toBe(true);
  await until('there is room again', async () => (await api.invoke('slow')).status === 200);
});

test('a namespace that stores no activations has none, and its callers get their results', async () => {
  const api = await newSubject(platform, 'forgetful', { storeActivations: false });
  await api.putAction('hello', 'function main() { return { hello: 1 }; }', { limits: { memory: 128 } });
  const blocking = await api.invoke('hello');
  expect(blocking.status).toBe(200);
  expect((await api.request('POST', '_/actions/hello', {})).status).toBe(202);
  const { activationId } = blocking.body as { activationId: string };
  // An activation of the guest that began later has a record already.
  await platform.api.putAction('after', 'function main() { return {}; }', { limits: { memory: 128 } });
  const later = await platform.api.invoke('after');
  await platform.api.record((later.body as { activationId: string }).activationId);
  expect((await api.request('GET', `_/activations/${activationId}`)).status).toBe(404);
  expect((await api.request('GET', '_/activations')).body).toEqual([]);
});

test('a blocked subject is refused at once, and let in at once when it is unblocked', async () => {
  const api = await newSubject(platform, 'blocked', {});
  expect((await api.request('GET', '_/actions')).status).toBe(200);
  await administer(platform, 'POST', 'subjects/blocked/block');
  expect((await api.request('GET', '_/actions')).status).toBe(401);
  await administer(platform, 'POST', 'subjects/blocked/unblock');
  expect((await api.request('GET', '_/actions')).status).toBe(200);
});
