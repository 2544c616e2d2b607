import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { bob, errorOf, hello, startApi } from './harness.js';
import type { Account, Api, Reply } from './harness.js';

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const path = (name: string, namespace = '_'): string => `/api/v1/namespaces/${namespace}/packages/${name}`;
const put = (name: string, body: unknown = {}, overwrite = false): Promise<Reply> =>
  api.request('PUT', `${path(name)}?overwrite=${overwrite}`, { body });
const putAction = (name: string, body: object = hello): Promise<Reply> =>
  api.request('PUT', `/api/v1/namespaces/_/actions/${name}`, { body });
const outcome = (reply: Reply): [number, string] => [reply.status, errorOf(reply)];

describe('a package', () => {
  test('is created with defaults', async () => {
    const reply = await put('plain', { name: 'ignored' });
    expect(reply.status).toBe(200);
    expect(reply.json).toEqual({
      namespace: 'alice',
      name: 'plain',
      binding: {},
      parameters: [],
      version: '0.0.1',
      publish: false,
      annotations: [],
      updated: expect.any(Number),
    });
    const read = await api.request('GET', path('plain'));
    expect(read.json).toEqual({ ...(reply.json as object), actions: [], feeds: [] });
    expect(await api.store.get('whisks', 'alice/plain')).toEqual({
      ...(reply.json as object),
      _id: 'alice/plain',
      _rev: expect.any(String),
      entityType: 'package',
    });
  });

  test('takes what is given, but for annotation binding', async () => {
    const body = {
      binding: {},
      parameters: [{ key: 'p', value: [1], init: true }],
      version: '2.1',
      publish: true,
      annotations: [
        { key: 'binding', value: 'a lie' },
        { key: 'a', value: 'b' },
      ],
    };
    expect((await put('given', body)).json).toMatchObject({
      binding: {},
      parameters: [{ key: 'p', value: [1], init: true }],
      version: '2.1.0',
      publish: true,
      annotations: [{ key: 'a', value: 'b' }],
    });
  });

  test('keeps on update what is not given, and replaces annotations', async () => {
    await put('updated', {
      parameters: [{ key: 'p', value: 1 }],
      annotations: [{ key: 'a', value: 1 }],
      publish: true,
    });
    expect(outcome(await put('updated'))).toEqual([409, 'resource already exists']);
    expect((await put('updated', {}, true)).json).toMatchObject({
      parameters: [{ key: 'p', value: 1 }],
      annotations: [{ key: 'a', value: 1 }],
      version: '0.0.2',
      publish: true,
    });
    const changed = await put('updated', { annotations: [{ key: 'b', value: 2 }], parameters: [] }, true);
    expect(changed.json).toMatchObject({ parameters: [], annotations: [{ key: 'b', value: 2 }], version: '0.0.3' });
  });

  test('shows its actions and feeds', async () => {
    await put('shop');
    await putAction('shop/buy');
    await putAction('shop/news', { ...hello, annotations: [{ key: 'feed', value: false }] });
    const { actions, feeds } = (await api.request('GET', path('shop'))).json as Record<string, unknown>;
    const annotations = [
      { key: 'provide-api-key', value: false },
      { key: 'exec', value: 'nodejs:20' },
    ];
    expect(actions).toEqual([{ name: 'buy', version: '0.0.1', annotations }]);
    expect(feeds).toEqual([
      { name: 'news', version: '0.0.1', annotations: [{ key: 'feed', value: false }, ...annotations] },
    ]);
  });

  test('is deleted when it is empty, or with force', async () => {
    await put('full');
    await putAction('full/one');
    const refused = (content: string): [number, string] => [
      409,
      `Package not empty (contains ${content}). Set force param or delete package contents.`,
    ];
    expect(outcome(await api.request('DELETE', path('full')))).toEqual(refused('1 entity'));
    await putAction('full/two');
    expect(outcome(await api.request('DELETE', `${path('full')}?force=false`))).toEqual(refused('2 entities'));
    const deleted = await api.request('DELETE', `${path('full')}?force=true`);
    expect([deleted.status, deleted.json]).toEqual([200, expect.objectContaining({ name: 'full', binding: {} })]);
    expect((await api.request('GET', path('full'))).status).toBe(404);
    await put('full');
    expect((await api.request('GET', path('full'))).json).toMatchObject({ actions: [] });
    expect((await api.request('DELETE', path('full'))).status).toBe(200);
  });

  test('that is deleted while actions are put into it leaves none behind', async () => {
    for (let round = 0; round < 5; round++) {
      await put('busy');
      const puts = Array.from({ length: 10 }, (_, number) => putAction(`busy/a${number}`));
      const deleted = await api.request('DELETE', `${path('busy')}?force=true`);
      expect(deleted.status).toBe(200);
      for (const { status } of await Promise.all(puts)) expect([200, 404]).toContain(status);
      const range = { view: 'actions', startKey: ['alice/busy'], endKey: ['alice/busy', '\ufff0'] } as const;
      expect(await api.store.query('whisks', range)).toEqual([]);
    }
  });

  test('is not there', async () => {
    expect(outcome(await api.request('GET', path('none')))).toEqual([
      404,
      "The requested resource 'alice/none' does not exist.",
    ]);
    expect(outcome(await api.request('DELETE', path('none')))).toEqual([404, 'The requested resource does not exist.']);
  });

  test.each([false, true])('of the reserved name is refused, overwrite=%s', async (overwrite) => {
    expect(outcome(await put('default', {}, overwrite))).toEqual([400, "Package name 'default' is reserved."]);
  });

  test('of the reserved name that is there may be read and deleted', async () => {
    const { json } = await put('template');
    await api.store.put('whisks', {
      ...(json as object),
      _id: 'alice/default',
      name: 'default',
      entityType: 'package',
    });
    expect((await api.request('GET', path('default'))).status).toBe(200);
    expect((await api.request('DELETE', path('default'))).status).toBe(200);
  });

  test('is no action, and an action is no package', async () => {
    await putAction('lone');
    await put('box');
    const text = 'Resource by this name exists but is not in this collection.';
    expect(outcome(await api.request('GET', path('lone')))).toEqual([409, text]);
    expect(outcome(await put('lone', {}, true))).toEqual([409, text]);
    expect(outcome(await api.request('DELETE', path('lone')))).toEqual([409, text]);
    expect(outcome(await api.request('GET', '/api/v1/namespaces/_/actions/box'))).toEqual([409, text]);
    expect(outcome(await putAction('lone/x'))).toEqual([409, text]);
  });

  test('is neither invoked nor refreshed', async () => {
    await put('still');
    const reply = await api.request('POST', path('still'), { body: {} });
    expect(reply.status).toBe(405);
    expect(reply.headers.allow).toBe('PUT, GET, DELETE');
  });

  test.each([
    ['no JSON', '{', 400, 'The request content was malformed:\n'],
    ['no object', '[]', 400, "The request content was malformed:\nObject expected in field 'binding'"],
    ['parameters', '{"parameters":{}}', 400, 'The request content was malformed:\nparameters malformed!'],
    ['version', '{"version":"x"}', 400, 'The request content was malformed:\nsemantic version malformed'],
    ['no body', '', 400, 'Request entity expected but not supplied'],
  ])('with a bad body: %s', async (_, body, status, text) => {
    const reply = await api.request('PUT', path('bad'), { body });
    expect(reply.status).toBe(status);
    expect(errorOf(reply)).toContain(text);
    expect((await api.request('GET', path('bad'))).status).toBe(404);
  });

  test.each(['parameters', 'annotations'])('with %s that are too large', async (field) => {
    const body = { [field]: [{ key: 'k', value: 'x'.repeat(1024 * 1024) }] };
    expect(outcome(await put('large', body))).toEqual([
      413,
      `${field} larger than allowed: 1048579 > 1048576 bytes. (setting: limits.maxParametersBytes)`,
    ]);
  });

  test('that cannot be understood', async () => {
    await api.store.put('whisks', { _id: 'alice/broken', namespace: 'alice', name: 7, entityType: 'package' });
    const text = 'Resource is corrupted and cannot be read.';
    for (const method of ['GET', 'DELETE']) {
      expect(outcome(await api.request(method, path('broken')))).toEqual([500, text]);
    }
    expect(outcome(await put('broken', {}, true))).toEqual([500, text]);
    expect(outcome(await api.request('GET', '/api/v1/namespaces/_/actions/broken/x'))).toEqual([500, text]);
    const others = await api.request('GET', '/api/v1/namespaces/alice/actions/broken/x', { as: bob });
    expect(outcome(others)).toEqual([403, "The supplied authentication is not authorized to access 'alice/broken'."]);
  });
});

describe('lists', () => {
  const own = '/api/v1/namespaces/_/packages';
  const list = async (query: string, as?: Account): Promise<unknown[]> =>
    (await api.request('GET', `/api/v1/namespaces/alice/packages${query}`, { as })).json as unknown[];
  const names = (rows: unknown[]): string[] => rows.map((row) => (row as { name: string }).name);

  test('rows hold a binding or false, and no parameters', async () => {
    await put('listed', { parameters: [{ key: 'p', value: 1 }], annotations: [{ key: 'a', value: 1 }] });
    await put('bound', { binding: { namespace: '_', name: 'listed' } });
    const binding = { namespace: 'alice', name: 'listed' };
    const row = { namespace: 'alice', version: '0.0.1', publish: false, updated: expect.any(Number) };
    const rows = (await api.request('GET', `${own}/?limit=0`)).json;
    expect(rows).toEqual(
      expect.arrayContaining([
        { ...row, name: 'bound', binding, annotations: [{ key: 'binding', value: binding }] },
        { ...row, name: 'listed', binding: false, annotations: [{ key: 'a', value: 1 }] },
      ]),
    );
    expect((await api.request('GET', `${own}?count=true`)).json).toEqual({ packages: (rows as unknown[]).length });
  });

  test("another's shows shared packages only, and no bindings", async () => {
    await put('shared', { publish: true });
    await put('sharedbinding', { publish: true, binding: { namespace: '_', name: 'shared' } });
    const rows = names(await list('?limit=0', bob));
    expect(rows).toContain('shared');
    expect(rows).not.toContain('sharedbinding');
    expect(rows).not.toContain('listed');
    const count = await api.request('GET', '/api/v1/namespaces/alice/packages?count=true', { as: bob });
    expect(count.json).toEqual({ packages: rows.length });
    expect((await api.request('GET', '/api/v1/namespaces/nobody/packages')).json).toEqual([]);
  });

  test.each([
    ['limit=201', "The value '201' is not in the range of 0 to 200 for packages."],
    ['skip=-1', "The value '-1' is not greater than or equal to 0 for packages."],
    ['skip=x', "The value 'x' is not an integer for packages."],
  ])('?%s is refused', async (query, text) => {
    const reply = await api.request('GET', `${own}?${query}`);
    expect([reply.status, errorOf(reply).split('\n')[1]]).toEqual([400, text]);
  });
});

describe("another's package", () => {
  const refusal = (name: string): [number, string] => [
    403,
    `The supplied authentication is not authorized to access 'alice/${name}'.`,
  ];

  test('is read if it is shared', async () => {
    await put('open', { publish: true, parameters: [{ key: 'p', value: 1 }] });
    const reply = await api.request('GET', path('open', 'alice'), { as: bob });
    expect(reply.json).toMatchObject({ name: 'open', parameters: [{ key: 'p', value: 1 }], actions: [] });
  });

  test('is refused if it is private, a binding, no package or missing', async () => {
    await put('private');
    await put('openbinding', { publish: true, binding: { namespace: 'alice', name: 'open' } });
    for (const name of ['private', 'openbinding', 'lone', 'none']) {
      expect(outcome(await api.request('GET', path(name, 'alice'), { as: bob }))).toEqual(refusal(name));
    }
  });

  test.each(['PUT', 'DELETE'])('%s is refused', async (method) => {
    const reply = await api.request(method, `${path('open', 'alice')}?overwrite=true`, {
      as: bob,
      ...(method === 'PUT' && { body: {} }),
    });
    expect(outcome(reply)).toEqual(refusal('open'));
  });
});
