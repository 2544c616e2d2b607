import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createArgumentUnlock } from '@gpuwhisk/common/entities/parameter-encryption';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import { hello, startApi } from './harness.js';
import type { Api, Reply } from './harness.js';

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

/** Checks that there is one parameter, encrypted, and gives its value. */
function expectLocked(parameters: unknown): unknown {
  expect(parameters).toEqual([{ key: 'p', value: expect.any(String), init: true, encryption: 'aes-128' }]);
  const [{ value }] = parameters as [Parameter];
  return unlock({ p: value }, { p: 'aes-128' });
}

test.each([
  ['actions', 'a', hello],
  ['packages', 'k', {}],
])('parameters of %s are stored and read encrypted, and put back as they were', async (collection, name, rest) => {
  const path = `${collection}/${name}`;
  expect(parametersOf(await call('PUT', path, { ...rest, ...clear }))).toEqual(clear.parameters);
  const { parameters } = await api.store.get('whisks', `alice/${name}`);
  expect(expectLocked(parameters)).toEqual({ p: { secret: true } });
  const read = parametersOf(await call('GET', path));
  expect(read).toEqual(parameters);
  // What was not given, or comes back encrypted, stays as it is stored.
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
    expect(expectLocked([fromPackage])).toEqual({ p: { secret: true } });
    expect(own).toMatchObject({ key: 'own', encryption: 'aes-128' });
  }
});

test('what was stored before encryption was turned on is read as it is', async () => {
  await call('PUT', 'actions/old', hello);
  const document = await api.store.get('whisks', 'alice/old');
  await api.store.put('whisks', { ...document, parameters: [{ key: 'p', value: 'plain' }] });
  expect(parametersOf(await call('GET', 'actions/old'))).toEqual([{ key: 'p', value: 'plain' }]);
});
