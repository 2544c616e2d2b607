import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { alice, bob, errorOf, hello, startApi } from './harness.js';
import type { Account, Api, Reply } from './harness.js';

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

let suffix = 0;
/** A name that no other test uses. */
const fresh = (name: string): string => `${name}${suffix}`;
beforeEach(() => {
  suffix++;
});

const path = (name: string): string => `/api/v1/namespaces/_/packages/${name}`;
const put = (name: string, body: unknown = {}, as: Account = alice): Promise<Reply> =>
  api.request('PUT', `${path(name)}?overwrite=true`, { body, as });
const bind = (name: string, provider: string, namespace = 'alice', as = alice): Promise<Reply> =>
  put(name, { binding: { namespace, name: provider } }, as);
const outcome = (reply: Reply): [number, string] => [reply.status, errorOf(reply)];
const notAuthorized = (resource: string): [number, string] => [
  403,
  `The supplied authentication is not authorized to access '${resource}'.`,
];

test('a binding says what it binds, in its field and its annotation', async () => {
  await put(fresh('p'));
  const body = {
    binding: { namespace: '_', name: fresh('p') },
    annotations: [
      { key: 'binding', value: '?' },
      { key: 'a', value: 1 },
    ],
  };
  const binding = { namespace: 'alice', name: fresh('p') };
  const reply = await put(fresh('b'), body);
  expect([reply.status, reply.json]).toEqual([
    200,
    expect.objectContaining({
      binding,
      annotations: [
        { key: 'a', value: 1 },
        { key: 'binding', value: binding },
      ],
    }),
  ]);
  const updated = await put(fresh('b'), { annotations: [{ key: 'c', value: 1 }], binding: {} });
  expect(updated.json).toMatchObject({
    binding,
    annotations: [
      { key: 'c', value: 1 },
      { key: 'binding', value: binding },
    ],
    version: '0.0.2',
  });
});

test("reading it merges the provider's parameters and shows the provider's actions", async () => {
  await put(fresh('p'), {
    publish: true,
    parameters: [
      { key: 'a', value: 'A' },
      { key: 'b', value: 'B' },
    ],
  });
  await api.request('PUT', `/api/v1/namespaces/_/actions/${fresh('p')}/run`, { body: hello });
  const parameters = [
    { key: 'c', value: 'c' },
    { key: 'b', value: null },
  ];
  const made = await put(fresh('b'), { binding: { namespace: 'alice', name: fresh('p') }, parameters }, bob);
  expect(made.json).toMatchObject({ namespace: 'bob', parameters });
  const read = await api.request('GET', path(fresh('b')), { as: bob });
  expect(read.json).toMatchObject({
    namespace: 'bob',
    name: fresh('b'),
    binding: { namespace: 'alice', name: fresh('p') },
    parameters: [
      { key: 'a', value: 'A' },
      { key: 'b', value: null },
      { key: 'c', value: 'c' },
    ],
    actions: [{ name: 'run' }],
    feeds: [],
  });
});

describe('refused', () => {
  test('what does not exist', async () => {
    const reply = await bind(fresh('b'), fresh('none'));
    expect(outcome(reply)).toEqual([400, 'Binding references a package that does not exist.']);
    expect(outcome(await bind(fresh('b'), fresh('none'), 'bob'))).toEqual(notAuthorized(`bob/${fresh('none')}`));
  });

  test('what is no package', async () => {
    await api.request('PUT', `/api/v1/namespaces/_/actions/${fresh('a')}`, { body: hello });
    const reply = await bind(fresh('b'), fresh('a'));
    expect(outcome(reply)).toEqual([409, 'Cannot bind to a resource that is not a package.']);
  });

  test('another binding, itself too', async () => {
    await put(fresh('p'));
    await bind(fresh('b'), fresh('p'));
    const text = 'Cannot bind to another package binding.';
    expect(outcome(await bind(fresh('c'), fresh('b')))).toEqual([400, text]);
    expect(outcome(await bind(fresh('b'), fresh('b')))).toEqual([400, text]);
    expect((await api.request('GET', path(fresh('b')))).json).toMatchObject({ binding: { name: fresh('p') } });
  });

  test('a private package of another namespace', async () => {
    await put(fresh('p'));
    expect(outcome(await bind(fresh('b'), fresh('p'), 'alice', bob))).toEqual(notAuthorized(`alice/${fresh('p')}`));
  });

  test('making a package a binding', async () => {
    await put(fresh('p'));
    await put(fresh('q'));
    const reply = await bind(fresh('q'), fresh('p'));
    expect(outcome(reply)).toEqual([409, 'Resource is a package and cannot be converted into a binding.']);
  });

  test.each([
    ['{"binding":7}', "Object expected in field 'namespace'"],
    ['{"binding":null}', "Object expected in field 'namespace'"],
    ['{"binding":{"name":"p"}}', "Object is missing required member 'namespace'"],
    ['{"binding":{"namespace":"_"}}', "Object is missing required member 'name'"],
    ['{"binding":{"namespace":"a/b","name":"p"}}', 'entity name malformed'],
  ])('%s', async (body, text) => {
    const reply = await api.request('PUT', path(fresh('b')), { body });
    expect(outcome(reply)).toEqual([400, `The request content was malformed:\n${text}`]);
  });
});

describe('when the provider changes', () => {
  test('one that is deleted leaves a binding that is not readable but deletable', async () => {
    await put(fresh('p'), { publish: true });
    await bind(fresh('b'), fresh('p'));
    await bind(fresh('b'), fresh('p'), 'alice', bob);
    await api.request('DELETE', path(fresh('p')));
    const own = await api.request('GET', path(fresh('b')));
    expect(outcome(own)).toEqual([404, `The requested resource 'alice/${fresh('b')}' does not exist.`]);
    const others = await api.request('GET', path(fresh('b')), { as: bob });
    expect(outcome(others)).toEqual(notAuthorized(`bob/${fresh('b')}`));
    for (const [method, name] of [
      ['GET', ''],
      ['GET', 'a'],
      ['POST', 'a'],
    ] as const) {
      const action = `/api/v1/namespaces/_/actions/${fresh('b')}/${name}`;
      expect(outcome(await api.request(method, action))).toEqual([404, 'The requested resource does not exist.']);
      const refused = await api.request(method, action, { as: bob });
      expect(outcome(refused)).toEqual(notAuthorized(`bob/${fresh('b')}`));
    }
    for (const as of [alice, bob]) {
      expect((await api.request('DELETE', path(fresh('b')), { as })).status).toBe(200);
    }
  });

  test('one that is no longer shared is no longer read through a binding', async () => {
    await put(fresh('p'), { publish: true });
    await bind(fresh('b'), fresh('p'), 'alice', bob);
    expect((await api.request('GET', path(fresh('b')), { as: bob })).status).toBe(200);
    await put(fresh('p'), { publish: false });
    const reply = await api.request('GET', path(fresh('b')), { as: bob });
    expect(outcome(reply)).toEqual(notAuthorized(`bob/${fresh('b')}`));
  });

  test('bindings that refer to each other, which only a database can hold', async () => {
    const template = (await put(fresh('t'))).json as object;
    const binding = (from: string, to: string): StoredDocument => ({
      ...template,
      _id: `alice/${from}`,
      name: from,
      binding: { namespace: 'alice', name: to },
      entityType: 'package',
    });
    await api.store.put('whisks', binding(fresh('x'), fresh('y')));
    await api.store.put('whisks', binding(fresh('y'), fresh('x')));
    const text = (name: string): string => `Package binding 'alice/${name}' contains a circular reference.`;
    expect(outcome(await api.request('GET', path(fresh('x'))))).toEqual([422, text(fresh('x'))]);
    const invoked = await api.request('POST', `/api/v1/namespaces/_/actions/${fresh('y')}/a`, { body: {} });
    expect(outcome(invoked)).toEqual([422, text(fresh('y'))]);
    expect((await bind(fresh('b'), fresh('x'))).status).toBe(422);
  });
});
