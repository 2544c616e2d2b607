import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { bob, errorOf, hello, startApi } from './harness.js';
import type { Account, Api, Reply } from './harness.js';

const root = '/api/v1/namespaces';
const forbidden = (error: string): [number, string] => [403, error];

let api: Api;

const get = async (path: string, as?: Account): Promise<[number, string]> => {
  const reply = await api.request('GET', `${root}/${path}`, as && { as });
  return [reply.status, reply.status === 200 ? '' : errorOf(reply)];
};
const put = (path: string, body: unknown, as?: Account): Promise<Reply> =>
  api.request('PUT', `${root}/_/${path}`, { body, ...(as && { as }) });

/**
 * A shared package of alice with an action, a private one without, and bindings of the shared package by alice and bob.
 */
async function start(sharedPackagesExecuteOnly: boolean): Promise<void> {
  api = await startApi({ config: { sharedPackagesExecuteOnly } });
  const replies = [
    await put('packages/shared', { publish: true }),
    await put('actions/shared/run', hello),
    await put('packages/private', {}),
    await put('packages/own', { binding: { namespace: '_', name: 'shared' } }),
    await put('packages/bound', { binding: { namespace: 'alice', name: 'shared' } }, bob),
  ];
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
}

describe('shared packages that are for execution only', () => {
  beforeAll(() => start(true));
  afterAll(() => api.close());

  test('are not shown to other namespaces, nor are their actions', async () => {
    expect(await get('alice/packages/shared', bob)).toEqual(
      forbidden("GET not permitted for 'alice/shared' since it's a shared package"),
    );
    const action = forbidden("GET not permitted for 'alice/shared' since it's an action in a shared package");
    expect(await get('alice/actions/shared/run', bob)).toEqual(action);
    expect(await get('alice/actions/shared/run?code=false', bob)).toEqual(action);
    expect(await get('alice/actions/shared/missing', bob)).toEqual(action);
  });

  test('nor through a binding', async () => {
    expect(await get('_/packages/bound', bob)).toEqual(
      forbidden('GET not permitted since bound is a binding of a shared package'),
    );
    expect(await get('_/actions/bound/run', bob)).toEqual(
      forbidden(
        "GET not permitted for 'bob/bound/run'. Resource does not exist or is an action in a shared package binding.",
      ),
    );
  });

  test('are shown to their own namespace, through its bindings too', async () => {
    for (const path of ['packages/shared', 'packages/own', 'actions/shared/run', 'actions/own/run']) {
      expect(await get(`_/${path}`)).toEqual([200, '']);
    }
    expect(await get('_/actions/own/missing')).toEqual([404, 'The requested resource does not exist.']);
  });

  test('are listed and invoked as ever; what is private is refused as ever', async () => {
    expect(await get('alice/packages', bob)).toEqual([200, '']);
    expect(await get('alice/actions/shared/', bob)).toEqual([200, '']);
    for (const path of ['alice/actions/shared/run', '_/actions/bound/run']) {
      expect((await api.request('POST', `${root}/${path}`, { as: bob, body: {} })).status).toBe(202);
    }
    const refusal = "The supplied authentication is not authorized to access 'alice/private'.";
    expect(await get('alice/packages/private', bob)).toEqual(forbidden(refusal));
  });
});

describe('shared packages by default', () => {
  beforeAll(() => start(false));
  afterAll(() => api.close());

  test('are shown', async () => {
    for (const path of [
      'alice/packages/shared',
      '_/packages/bound',
      'alice/actions/shared/run',
      '_/actions/bound/run',
    ]) {
      expect(await get(path, bob)).toEqual([200, '']);
    }
  });
});
