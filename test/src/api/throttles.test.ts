// OpenWhisk's ThrottleTests and NamespaceSpecificThrottleTests, and the order of checks.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { putIdentity } from '@gpuwhisk/controller/authentication/authentication';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { actionPath, alice, bob, errorOf, hello, startApi } from './harness.js';
import type { Account, Api, Reply } from './harness.js';

const limits = { invocationsPerMinute: 3, concurrentInvocations: 2, firesPerMinute: 2 };
const tooMany = (count: number, allowed: number, setBy = 'setting: limits.invocationsPerMinute'): [number, string] => [
  429,
  `Too many requests in the last minute (count: ${count}, allowed: ${allowed}). (${setBy})`,
];
const tooManyAtOnce = (
  count: number,
  allowed: number,
  setBy = 'setting: limits.concurrentInvocations',
): [number, string] => [
  429,
  `Too many concurrent requests in flight (count: ${count}, allowed: ${allowed}). (${setBy})`,
];

let api: Api;
/** The clock's time, epoch ms; set to the start of a minute before each test. */
let nowMs: number;
beforeEach(async () => {
  nowMs = 1_700_000_040_000;
  api = await startApi({ limits, clock: { ...systemClock, now: () => nowMs } });
  await api.request('PUT', actionPath('hello'), { body: hello });
});
afterEach(() => api.close());

const invoke = (path = actionPath('hello'), as: Account = alice, headers = {}): Promise<Reply> =>
  api.request('POST', path, { as, headers });
const seen = (reply: Reply): [number, string | undefined] => [
  reply.status,
  reply.status === 202 ? undefined : errorOf(reply),
];

async function withLimits(name: string, own: Record<string, number>): Promise<Account> {
  const account = { subject: `${name}-subject`, namespace: name, uuid: `${name}-uuid`, key: 'z'.repeat(64) };
  await putIdentity(api.store, account);
  await api.store.put('subjects', { _id: `${name}/limits`, ...own });
  await api.request('PUT', actionPath('hello'), { body: hello, as: account });
  return account;
}

describe('invocations a minute', () => {
  test('are counted by namespace, and start anew with the minute', async () => {
    for (let count = 0; count < 3; count++) expect((await invoke()).status).toBe(202);
    expect(seen(await invoke())).toEqual(tooMany(4, 3));
    expect(seen(await invoke())).toEqual(tooMany(5, 3));
    expect((await invoke(actionPath('hello'), bob)).status).toBe(404);
    nowMs += 59_999;
    expect(seen(await invoke())).toEqual(tooMany(6, 3));
    nowMs += 1;
    expect((await invoke()).status).toBe(202);
    expect(api.invocations).toHaveLength(4);
  });

  test.each([
    ['cached, on the short way', {}],
    ['on the long way', { 'x-ow-extra-logging': 'on' }],
  ])('are counted %s', async (_, headers) => {
    for (let count = 0; count < 3; count++)
      expect((await invoke(actionPath('hello'), alice, headers)).status).toBe(202);
    expect(seen(await invoke(actionPath('hello'), alice, headers))).toEqual(tooMany(4, 3));
  });

  test('are refused before anything is looked up or read, and after names were looked at', async () => {
    for (let count = 0; count < 3; count++) expect(seen(await invoke(actionPath('nothing')))[0]).toBe(404);
    expect(seen(await invoke(actionPath('nothing')))).toEqual(tooMany(4, 3));
    expect(seen(await invoke('/api/v1/namespaces/bob/actions/secret'))).toEqual(tooMany(5, 3));
    const malformed = await api.request('POST', `${actionPath('hello')}?timeout=x`, { body: '{' });
    expect(seen(malformed)).toEqual(tooMany(6, 3));
    expect(seen(await invoke(actionPath('a!')))).toEqual([400, 'The name of the entity contains illegal characters.']);
    expect((await api.request('POST', actionPath('hello'), { as: null })).status).toBe(401);
    expect((await api.request('GET', actionPath('hello'))).status).toBe(200);
    expect((await api.request('PUT', `${actionPath('hello')}?overwrite=true`, { body: hello })).status).toBe(200);
  });
});

describe('stored bytes', () => {
  const large = { ...hello, annotations: [{ key: 'text', value: 'x'.repeat(600_000) }] };
  const tooMuch = [
    429,
    expect.stringMatching(/^Too much is stored in the namespace \(bytes: \d{7}, allowed: 1048576, /),
  ];
  const put = (path: string, as: Account, body: object = large): Promise<Reply> =>
    api.request('PUT', `/api/v1/namespaces/_/${path}?overwrite=true`, { as, body });

  test("are bounded: the namespace's own writes and calls are refused until it has deleted enough", async () => {
    const full = await withLimits('full', { storedMiB: 1, invocationsPerMinute: 100 });
    await put('triggers/t', full, {});
    expect((await put('actions/a', full)).status).toBe(200);
    expect((await put('packages/p', full, { annotations: large.annotations })).status).toBe(200);
    const refused = [
      await put('actions/b', full, hello),
      await put('actions/p/b', full, hello),
      await put('packages/p', full, {}),
      await put('triggers/t', full, {}),
      await put('rules/r', full, { trigger: '/_/t', action: '/_/hello' }),
      await api.request('POST', '/api/v1/namespaces/_/versions/a', { as: full }),
      await api.request('POST', '/api/v1/namespaces/_/triggers/t', { as: full }),
      await invoke(actionPath('hello'), full),
      await invoke(actionPath('hello'), full, { 'x-ow-extra-logging': 'on' }),
      await api.request('POST', '/api/v1/web/whisk.system/apimgmt/createApi.http', { as: full, body: {} }),
    ];
    for (const reply of refused) expect(seen(reply)).toEqual(tooMuch);
    const { json } = await api.request('GET', '/api/v1/namespaces/_/limits', { as: full });
    expect(json).toMatchObject({ storedMiB: 1, storedBytes: api.store.storedBytes('full') });
    expect(await api.metrics.registry.metrics()).toContain(
      `gpuwhisk_stored_limit_total{namespace="full"} ${refused.length}`,
    );
    // Others notice nothing.
    expect((await put('actions/b', bob, hello)).status).toBe(200);
    expect((await invoke(actionPath('b'), bob)).status).toBe(202);
    // Reads and removals go on, and make room.
    expect((await api.request('GET', actionPath('a'), { as: full })).status).toBe(200);
    expect((await api.request('DELETE', actionPath('a'), { as: full })).status).toBe(200);
    expect((await put('actions/b', full, hello)).status).toBe(200);
    expect((await invoke(actionPath('b'), full)).status).toBe(202);
  });

  test('have a bound for namespaces without their own, which all may read', async () => {
    const { json } = await api.request('GET', '/api/v1/namespaces/_/limits');
    expect(json).toMatchObject({ storedMiB: 10_240, storedBytes: api.store.storedBytes('alice') });
  });
});

describe('invocations in flight', () => {
  test('are refused at the limit, and let in again when one is done', async () => {
    const holds = api.state.holds('inFlight');
    holds.hold(alice.uuid, 'first', 60_000);
    expect((await invoke()).status).toBe(202);
    holds.hold(alice.uuid, 'second', 60_000);
    expect(seen(await invoke())).toEqual(tooManyAtOnce(2, 2));
    expect((await invoke(actionPath('hello'), bob)).status).toBe(404);
    holds.release(alice.uuid, 'first');
    expect((await invoke()).status).toBe(202);
  });

  test('come after the count of the minute', async () => {
    const holds = api.state.holds('inFlight');
    for (const token of ['first', 'second']) holds.hold(alice.uuid, token, 60_000);
    for (let count = 0; count < 3; count++) expect(seen(await invoke())).toEqual(tooManyAtOnce(2, 2));
    expect(seen(await invoke())).toEqual(tooMany(4, 3));
  });
});

describe("a namespace's own limits", () => {
  test('of 0 let nothing in', async () => {
    const zero = await withLimits('zero', { invocationsPerMinute: 0, firesPerMinute: 0, concurrentInvocations: 0 });
    expect(seen(await invoke(actionPath('hello'), zero))).toEqual(
      tooMany(1, 0, 'limit of the namespace: invocationsPerMinute'),
    );
    const still = await withLimits('still', { concurrentInvocations: 0 });
    expect(seen(await invoke(actionPath('hello'), still))).toEqual(
      tooManyAtOnce(0, 0, 'limit of the namespace: concurrentInvocations'),
    );
  });

  test('of 1 let one in', async () => {
    const one = await withLimits('one', { invocationsPerMinute: 1 });
    expect((await invoke(actionPath('hello'), one)).status).toBe(202);
    expect(seen(await invoke(actionPath('hello'), one))).toEqual(
      tooMany(2, 1, 'limit of the namespace: invocationsPerMinute'),
    );
  });

  test("may lie above the system's", async () => {
    const roomy = await withLimits('roomy', { invocationsPerMinute: 100, concurrentInvocations: 50 });
    for (const token of ['a', 'b', 'c', 'd']) api.state.holds('inFlight').hold(roomy.uuid, token, 60_000);
    for (let count = 0; count < 10; count++) expect((await invoke(actionPath('hello'), roomy)).status).toBe(202);
  });
});

test('refusals are counted under the names of OpenWhisk', async () => {
  for (let count = 0; count < 5; count++) await invoke();
  nowMs += 60_000;
  for (const token of ['a', 'b']) api.state.holds('inFlight').hold(alice.uuid, token, 60_000);
  await invoke();
  const { text } = await api.request('GET', '/metrics', { as: null });
  expect(text).toContain('openwhisk_action_limit_timed_total{namespace="alice"} 2');
  expect(text).toContain('openwhisk_action_limit_concurrent_total{namespace="alice"} 1');
});
