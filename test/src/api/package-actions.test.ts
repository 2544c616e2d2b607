import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { alice, bob, errorOf, hello, startApi } from './harness.js';
import type { Account, Api, Reply } from './harness.js';

let api: Api;
const call = (method: string, name: string, body?: unknown, as: Account = alice): Promise<Reply> =>
  api.request(method, `/api/v1/namespaces/${name}`, { body, as });
const outcome = (reply: Reply): [number, string] => [reply.status, errorOf(reply)];
const notAuthorized = (resource: string): [number, string] => [
  403,
  `The supplied authentication is not authorized to access '${resource}'.`,
];
const missing: [number, string] = [404, 'The requested resource does not exist.'];
const onBinding: [number, string] = [400, 'Operation not permitted on package binding.'];

beforeAll(async () => {
  api = await startApi();
  const of = (...keys: string[]) => ({
    parameters: keys.map((key) => ({ key, value: key.toUpperCase() })),
  });
  await call('PUT', '_/packages/open', { publish: true, ...of('p', 'shadowed') });
  await call('PUT', '_/actions/open/act', { ...hello, parameters: [{ key: 'a', value: 1 }] });
  await call('PUT', '_/actions/open/final', { ...hello, annotations: [{ key: 'final', value: true }] });
  await call('PUT', '_/packages/closed', {});
  await call('PUT', '_/actions/closed/act', hello);
  const binding = { namespace: 'alice', name: 'open' };
  const over = [
    { key: 'shadowed', value: null },
    { key: 'b', value: 'B' },
    { key: 'a', value: 'never seen' },
  ];
  await call('PUT', '_/packages/link', { binding, publish: true, parameters: over }, bob);
});
afterAll(() => api.close());

describe('reading', () => {
  test('merges the parameters of the package below those of the action', async () => {
    expect((await call('GET', '_/actions/open/act')).json).toMatchObject({
      namespace: 'alice/open',
      name: 'act',
      exec: { kind: 'nodejs:20', code: hello.exec.code },
      parameters: [
        { key: 'p', value: 'P' },
        { key: 'shadowed', value: 'SHADOWED' },
        { key: 'a', value: 1 },
      ],
    });
  });

  test('through a binding merges its parameters between, and names it where the code is left out', async () => {
    const shown = {
      namespace: 'alice/open',
      parameters: [
        { key: 'p', value: 'P' },
        { key: 'shadowed', value: null },
        { key: 'b', value: 'B' },
        { key: 'a', value: 1 },
      ],
    };
    const whole = (await call('GET', '_/actions/link/act', undefined, bob)).json;
    expect(whole).toMatchObject(shown);
    expect(whole).not.toHaveProperty('binding');
    const brief = (await call('GET', '_/actions/link/act?code=false', undefined, bob)).json;
    expect(brief).toMatchObject({ ...shown, binding: 'bob/link' });
    expect(brief).not.toHaveProperty('exec.code');
    expect((await call('GET', '_/actions/open/act?code=false')).json).not.toHaveProperty('binding');
  });

  test("another's needs a shared package", async () => {
    expect((await call('GET', 'alice/actions/open/act', undefined, bob)).status).toBe(200);
    expect(outcome(await call('GET', 'alice/actions/closed/act', undefined, bob))).toEqual(
      notAuthorized('alice/closed'),
    );
    expect(outcome(await call('GET', 'alice/actions/nopkg/act', undefined, bob))).toEqual(notAuthorized('alice/nopkg'));
    expect(outcome(await call('GET', 'bob/actions/link/act'))).toEqual(notAuthorized('bob/link'));
  });

  test('what is not there', async () => {
    expect(outcome(await call('GET', '_/actions/nopkg/act'))).toEqual(missing);
    expect(outcome(await call('GET', '_/actions/open/none'))).toEqual(missing);
    expect(outcome(await call('GET', '_/actions/link/none', undefined, bob))).toEqual(missing);
  });
});

describe('writing', () => {
  test('answers with the parameters of the action alone', async () => {
    const body = { ...hello, parameters: [{ key: 'own', value: 1 }] };
    const created = await call('PUT', '_/actions/open/made', body);
    expect(created.json).toMatchObject({ namespace: 'alice/open', parameters: [{ key: 'own', value: 1 }] });
    expect((await api.store.get('whisks', 'alice/open/made')).parameters).toEqual([{ key: 'own', value: 1 }]);
    expect(outcome(await call('PUT', '_/actions/open/made', body))).toEqual([409, 'resource already exists']);
    expect((await call('PUT', '_/actions/open/made?overwrite=true', {})).json).toMatchObject({ version: '0.0.2' });
    expect((await call('DELETE', '_/actions/open/made')).json).toMatchObject({
      parameters: [{ key: 'own', value: 1 }],
    });
    expect(outcome(await call('DELETE', '_/actions/open/made'))).toEqual(missing);
  });

  test.each(['PUT', 'DELETE'])('%s needs the package, and one of one’s own', async (method) => {
    const body = method === 'PUT' ? hello : undefined;
    expect(outcome(await call(method, '_/actions/nopkg/act', body))).toEqual(missing);
    expect(outcome(await call(method, 'alice/actions/open/act', body, bob))).toEqual(notAuthorized('alice/open/act'));
    expect(outcome(await call(method, '_/actions/link/act', body, bob))).toEqual(onBinding);
    const shown = await call('GET', '_/actions/open/act');
    expect(shown.json).toMatchObject({ version: '0.0.1' });
  });
});

describe('listing', () => {
  const names = (reply: Reply): string[] => (reply.json as { name: string }[]).map(({ name }) => name);

  test('a package, or what a binding leads to', async () => {
    expect(names(await call('GET', '_/actions/open/'))).toEqual(['final', 'act']);
    const through = await call('GET', '_/actions/link/', undefined, bob);
    expect(names(through)).toEqual(['final', 'act']);
    expect((through.json as unknown[])[0]).toMatchObject({ namespace: 'alice/open', exec: { binary: false } });
    expect(names(await call('GET', '_/actions/open/?limit=1&skip=1'))).toEqual(['act']);
    expect((await call('GET', '_/actions/open/?count=true')).json).toEqual({ actions: 2 });
    expect(names(await call('GET', 'alice/actions/open/', undefined, bob))).toEqual(['final', 'act']);
  });

  test('a namespace has the actions of its packages', async () => {
    const rows = (await call('GET', '_/actions?limit=0')).json as { namespace: string; name: string }[];
    expect(rows.map(({ namespace, name }) => `${namespace}/${name}`).sort()).toEqual([
      'alice/closed/act',
      'alice/open/act',
      'alice/open/final',
    ]);
  });

  test('is refused as reading is', async () => {
    expect(outcome(await call('GET', '_/actions/nopkg/'))).toEqual(missing);
    expect(outcome(await call('GET', 'alice/actions/closed/', undefined, bob))).toEqual(notAuthorized('alice/closed'));
    expect((await call('GET', '_/actions/open')).status).toBe(409);
  });

  test('is all that the path with a slash at its end is for', async () => {
    for (const method of ['PUT', 'POST', 'DELETE']) {
      const reply = await call(method, '_/actions/open/', method === 'DELETE' ? undefined : hello);
      expect(outcome(reply)).toEqual([404, 'The requested resource could not be found.']);
    }
  });
});

describe('invoking', () => {
  const invoked = () => api.invocations.at(-1);
  const parametersOf = (reply: Reply): unknown => {
    expect(reply.status).toBe(202);
    return Object.fromEntries((invoked()?.action.parameters ?? []).map(({ key, value }) => [key, value]));
  };

  // The second invocation finds package, binding and action in the caches.
  test.each(['first', 'second'])('merges package, binding and action: %s time', async () => {
    expect(parametersOf(await call('POST', '_/actions/open/act', {}))).toEqual({ p: 'P', shadowed: 'SHADOWED', a: 1 });
    expect(invoked()?.binding).toBeUndefined();
    const through = await call('POST', '_/actions/link/act', { x: 1 }, bob);
    expect(parametersOf(through)).toEqual({ p: 'P', shadowed: null, b: 'B', a: 1 });
    expect(invoked()).toMatchObject({
      binding: 'bob/link',
      payload: { x: 1 },
      action: { namespace: 'alice/open', name: 'act' },
      identity: { namespace: { name: 'bob' } },
    });
    expect(parametersOf(await call('POST', 'alice/actions/open/act', {}, bob))).toMatchObject({ p: 'P' });
  });

  test('changed packages count at once', async () => {
    await call('PUT', '_/packages/moving', { parameters: [{ key: 'v', value: 1 }], publish: true });
    await call('PUT', '_/actions/moving/act', hello);
    expect(parametersOf(await call('POST', 'alice/actions/moving/act', {}, bob))).toEqual({ v: 1 });
    await call('PUT', '_/packages/moving?overwrite=true', { parameters: [{ key: 'v', value: 2 }] });
    expect(parametersOf(await call('POST', 'alice/actions/moving/act', {}, bob))).toEqual({ v: 2 });
    await call('PUT', '_/packages/moving?overwrite=true', { publish: false });
    expect(outcome(await call('POST', 'alice/actions/moving/act', {}, bob))).toEqual(notAuthorized('alice/moving'));
    await call('DELETE', '_/packages/moving?force=true');
    expect(outcome(await call('POST', '_/actions/moving/act', {}))).toEqual(missing);
  });

  test('final parameters are those of the package and binding too, where they have a value', async () => {
    const text = 'Request defines parameters that are not allowed (e.g., reserved properties).';
    expect(outcome(await call('POST', '_/actions/open/final', { p: 1 }))).toEqual([400, text]);
    expect(outcome(await call('POST', '_/actions/link/final', { b: 1 }, bob))).toEqual([400, text]);
    expect((await call('POST', '_/actions/link/final', { shadowed: 1 }, bob)).status).toBe(202);
  });

  test('is refused as reading is', async () => {
    expect(outcome(await call('POST', 'alice/actions/closed/act', {}, bob))).toEqual(notAuthorized('alice/closed'));
    expect(outcome(await call('POST', 'bob/actions/link/act', {}))).toEqual(notAuthorized('bob/link'));
    expect(outcome(await call('POST', 'alice/actions/act', {}, bob))).toEqual(notAuthorized('alice/act'));
    expect(outcome(await call('POST', '_/actions/nopkg/act', {}))).toEqual(missing);
    expect(outcome(await call('POST', '_/actions/open/none', {}))).toEqual(missing);
  });
});
