import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createArgumentUnlock } from '@gpuwhisk/common/entities/parameter-encryption';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import { bob, errorOf, hello, startApi } from './harness.js';
import type { Api, Reply, RequestOptions } from './harness.js';

const keys = { 'aes-128': ['ra1V6AfOYAv0jCzEdufIFA=='] };
const unlock = createArgumentUnlock({ keys });
const clear = { parameters: [{ key: 'p', value: { secret: true }, init: true }] };
let api: Api;
beforeAll(async () => {
  api = await startApi({ config: { parameterStorage: { current: 'aes-128', keys } } });
});
afterAll(() => api.close());

const call = async (method: string, path: string, body?: unknown): Promise<Reply> => {
  const reply = await api.request(method, `/api/v1/namespaces/_/${path}`, { body });
  expect([path, reply.status]).toEqual([path, method === 'POST' ? 202 : 200]);
  return reply;
};
const parametersOf = (reply: Reply): Parameter[] => (reply.json as { parameters: Parameter[] }).parameters;

/** Expects exactly one parameter, which is encrypted, and returns its value. */
function expectLocked(parameters: unknown, documentId: string): unknown {
  expect(parameters).toMatchObject([{ key: 'p', value: expect.any(String), init: true, encryption: 'aes-128' }]);
  const [{ value }] = parameters as [Parameter];
  return unlock({ p: value }, { p: 'aes-128' }, { p: documentId });
}

test.each([
  ['actions', 'a', hello],
  ['packages', 'k', {}],
])('parameters of %s are stored and read encrypted, and put back as they were', async (collection, name, rest) => {
  const path = `${collection}/${name}`;
  expect(parametersOf(await call('PUT', path, { ...rest, ...clear }))).toEqual(clear.parameters);
  const { parameters } = await api.store.get('whisks', `alice/${name}`);
  expect(expectLocked(parameters, `alice/${name}`)).toEqual({ p: { secret: true } });
  expect((parameters as object[]).map((one) => Object.keys(one).sort())).toEqual([
    ['encryption', 'init', 'key', 'value'],
  ]);
  const read = parametersOf(await call('GET', path));
  expect(read).toEqual(parameters);
  // A PUT without parameters, or with the encrypted values that were read, leaves the stored values unchanged.
  await call('PUT', `${path}?overwrite=true`, {});
  await call('PUT', `${path}?overwrite=true`, { parameters: read });
  expect((await api.store.get('whisks', `alice/${name}`)).parameters).toEqual(parameters);
  expect(parametersOf(await call('DELETE', path))).toEqual(parameters);
});

test('the invoker gets them as they are stored', async () => {
  await call('PUT', 'packages/pkg', clear);
  await call('PUT', 'actions/pkg/act', { ...hello, parameters: [{ key: 'own', value: 1 }] });
  for (const time of ['first', 'second']) {
    await call('POST', 'actions/pkg/act', { time });
    const [fromPackage, own] = api.invocations.at(-1)?.action.parameters ?? [];
    expect(expectLocked([fromPackage], 'alice/pkg')).toEqual({ p: { secret: true } });
    expect(fromPackage).toHaveProperty('lockedIn', 'alice/pkg');
    expect(own).toMatchObject({ key: 'own', encryption: 'aes-128', lockedIn: 'alice/pkg/act' });
  }
});

test('what was stored before encryption was turned on is read as it is', async () => {
  await call('PUT', 'actions/old', hello);
  const document = await api.store.get('whisks', 'alice/old');
  await api.store.put('whisks', { ...document, parameters: [{ key: 'p', value: 'plain' }] });
  expect(parametersOf(await call('GET', 'actions/old'))).toEqual([{ key: 'p', value: 'plain' }]);
});

describe('an encrypted value', () => {
  const body = (parameters: unknown, rest: object = {}) => ({ body: { ...rest, parameters } });
  const put = (path: string, options: RequestOptions) =>
    api.request('PUT', `/api/v1/namespaces/_/${path}?overwrite=true`, options);
  const refusal = [400, expect.stringContaining("The value of parameter 'p' is encrypted")];
  const seen = (reply: Reply): unknown => [reply.status, reply.status === 200 ? '' : errorOf(reply)];

  test("of another namespace's shared package is not taken into an action or package of one's own", async () => {
    await call('PUT', 'packages/shared', { ...clear, publish: true });
    const shown = await api.request('GET', '/api/v1/namespaces/alice/packages/shared', { as: bob });
    const stolen = parametersOf(shown);
    expect(expectLocked(stolen, 'alice/shared')).toEqual({ p: { secret: true } });
    const asBob = { as: bob };
    expect(seen(await put('actions/spy', { ...body(stolen, hello), ...asBob }))).toEqual(refusal);
    expect(seen(await put('packages/spy', { ...body(stolen), ...asBob }))).toEqual(refusal);
    expect(seen(await put('actions/spy', { ...body([], hello), ...asBob }))).toEqual([200, '']);
    expect(seen(await put('actions/spy', { ...body(stolen), ...asBob }))).toEqual(refusal);
    // A binding shows the package's encrypted parameter. A PUT of that value back does not store it in the binding.
    const binding = { binding: { namespace: 'alice', name: 'shared' } };
    expect(seen(await put('packages/bound', { body: binding, ...asBob }))).toEqual([200, '']);
    const merged = parametersOf(await api.request('GET', '/api/v1/namespaces/_/packages/bound', asBob));
    expect(merged).toEqual(stolen);
    expect(seen(await put('packages/bound', { ...body(merged), ...asBob }))).toEqual([200, '']);
    expect((await api.store.get('whisks', 'bob/bound')).parameters).toEqual([]);
  });

  test('is no other of the same namespace either, nor made up, nor one that was', async () => {
    await call('PUT', 'actions/one', { ...hello, ...clear });
    const first = parametersOf(await call('GET', 'actions/one'));
    expect(seen(await put('actions/two', body(first, hello)))).toEqual(refusal);
    for (const encryption of ['aes-128', 'noop', '']) {
      expect(seen(await put('actions/one', body([{ key: 'p', value: 'x', encryption }])))).toEqual(refusal);
    }
    expect(seen(await put('actions/one', body(clear.parameters)))).toEqual([200, '']);
    expect(seen(await put('actions/one', body(first)))).toEqual(refusal);
  });

  test('that a GET shows with its package is left to the package', async () => {
    await call('PUT', 'packages/whole', clear);
    await call('PUT', 'actions/whole/part', { ...hello, parameters: [{ key: 'own', value: 1 }] });
    const { parameters: before } = await api.store.get('whisks', 'alice/whole/part');
    const merged = parametersOf(await call('GET', 'actions/whole/part'));
    expect(merged.map(({ key }) => key)).toEqual(['p', 'own']);
    await call('PUT', 'actions/whole/part?overwrite=true', { parameters: merged });
    expect((await api.store.get('whisks', 'alice/whole/part')).parameters).toEqual(before);
  });

  test('that OpenWhisk has stored is bound to its action when that is written again', async () => {
    await call('PUT', 'actions/migrated', hello);
    const { parameters, ...document } = await api.store.get('whisks', 'alice/migrated');
    expect(parameters).toEqual([]);
    const value = 'AAAADAEIDxYdJCsyOUBHTjczZ3Oyprw9n69pJb4Nzo81Jo2fUTMZPA==';
    await api.store.put('whisks', { ...document, parameters: [{ key: 'p', value, encryption: 'aes-128' }] });
    expect(parametersOf(await call('PUT', 'actions/migrated?overwrite=true', { publish: true }))).toHaveLength(1);
    const [stored] = (await api.store.get('whisks', 'alice/migrated')).parameters as unknown as [Parameter];
    expect(stored.value).not.toBe(value);
    expect(unlock({ p: stored.value }, { p: 'aes-128' }, { p: 'alice/migrated' })).toEqual({ p: 'secret' });
    expect(() => unlock({ p: stored.value }, { p: 'aes-128' }, { p: 'alice/other' })).toThrow('cannot be decrypted');
  });
});
