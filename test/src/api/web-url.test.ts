import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { actionPath, alice, basic, bob, errorOf } from './harness.js';
import { activationId, startWebApi, webMethods } from './web-harness.js';
import type { WebApi } from './web-harness.js';

let web: WebApi;
beforeAll(async () => {
  web = await startWebApi();
  await web.put('hello');
  await web.put('a.b-c d');
  await web.put('private', {});
});
afterAll(() => web.api.close());
beforeEach(() => web.result(undefined));

const noSuchEntity = 'The requested resource does not exist.';
const noSuchRoute = 'The requested resource could not be found.';

describe('URLs that name a web action', () => {
  test.each([
    ['default/hello.json', ''],
    ['default/hello.json/', '/'],
    ['default/hello.json/content', '/content'],
    ['default/hello.json/a/b//c', '/a/b//c'],
    ['default/hello.json/../../up', '/../../up'],
    ['default/hello.json/..%2f..%2Fup', '/..%2f..%2Fup'],
    ['default/hello.json/caf%C3%A9/%zz', '/caf%C3%A9/%zz'],
    ['default/%68ello.json', ''],
    ['default/a.b-c%20d.json/x', '/x'],
  ])('%s', async (path, rest) => {
    const reply = await web.call('GET', path);
    expect([reply.status, reply.headers['x-openwhisk-activation-id']]).toEqual([200, activationId]);
    expect(reply.json).toMatchObject({ __ow_path: rest });
  });

  test('the namespace of the URL pays, whoever calls', async () => {
    await web.call('GET', 'default/hello.json', { as: bob });
    expect(web.api.invocations.at(-1)).toMatchObject({
      identity: { subject: alice.subject, namespace: { name: alice.namespace, uuid: alice.uuid } },
      action: { name: 'hello' },
      blocking: true,
      waitMs: 60_000,
    });
  });

  test.each(webMethods)('%s', async (method) => {
    const reply = await web.call(method, 'default/hello.json');
    expect(reply.status).toBe(200);
    if (method !== 'OPTIONS') expect(web.arguments()).toMatchObject({ __ow_method: method.toLowerCase() });
    if (method === 'HEAD') expect(reply.text).toBe('');
  });

  test('without an extension the answer is HTTP', async () => {
    web.result({ statusCode: 201, body: 'made' });
    expect(await web.call('GET', 'default/hello')).toMatchObject({ status: 201, text: 'made' });
  });

  test('the transaction id is the client’s', async () => {
    const reply = await web.call('GET', 'default/hello.json', { headers: { 'x-request-id': 'mine' } });
    expect(reply.headers['x-request-id']).toBe('mine');
    expect(web.api.invocations.at(-1)).toMatchObject({ transactionId: 'mine' });
  });
});

describe('URLs that name none', () => {
  test.each([
    ['an action that is not there', 'default/nothing.json'],
    ['an action that is not exported', 'default/private.json'],
    ['a package that is not there', 'nothing/hello.json'],
    ['an extension that is none', 'default/hello.xyz'],
    ['an extension that is none, and a path', 'default/hello.xyz/content'],
    ['an extension too many', 'default/hello.json.json'],
    ['another extension’s beginning', 'default/hello.htm'],
  ])('%s', async (_, path) => {
    for (const method of webMethods) {
      for (const as of [null, alice]) {
        const reply = await web.call(method, path, { as });
        expect([method, reply.status]).toEqual([method, 404]);
        if (method === 'HEAD') continue;
        expect(errorOf(reply)).toBe(noSuchEntity);
        expect(reply.text.split('\n')).toHaveLength(4);
        expect(reply.headers['access-control-allow-origin']).toBeUndefined();
      }
    }
  });

  test('a namespace that is not there', async () => {
    for (const as of [null, alice]) {
      const reply = await web.api.request('GET', '/api/v1/web/nobody/default/hello.json', { as });
      expect([reply.status, errorOf(reply)]).toEqual([404, noSuchEntity]);
    }
  });

  test('a namespace whose subject is blocked', async () => {
    const namespaces = [{ name: 'blocked', uuid: 'blocked-uuid', key: 'k'.repeat(64) }];
    await web.api.store.put('subjects', {
      _id: 'blocked-subject',
      subject: 'blocked-subject',
      namespaces,
      blocked: true,
    });
    const reply = await web.api.request('GET', '/api/v1/web/blocked/default/hello.json', { as: null });
    expect([reply.status, errorOf(reply)]).toEqual([404, noSuchEntity]);
  });

  test.each([
    '',
    '/',
    '/alice',
    '/alice/hello',
    '/alice/default/',
    '/alice//hello',
    '//default/hello',
    '/alice/default/.json',
    '/alice/default/..',
    '/../namespaces/x',
    '/alice/default/hello%2Fx',
    '/alice/default%2Fhello',
    '/alice/default/%zz',
    '/alice/default/hell%C3%B6',
    '/alice/default/x%00',
    `/alice/default/${'x'.repeat(257)}`,
  ])('/web%s is no route', async (path) => {
    const get = (as: typeof alice | null): ReturnType<typeof web.api.request> =>
      web.api.request('GET', `/api/v1/web${path}`, { as });
    const known = await get(alice);
    expect([known.status, errorOf(known)]).toEqual([404, noSuchRoute]);
    expect((await get(null)).status).toBe(401);
  });

  test('nothing of it was invoked', async () => {
    const before = web.api.invocations.length;
    await web.call('GET', 'default/private.json');
    await web.call('GET', 'default/hello.xyz');
    expect(web.api.invocations).toHaveLength(before);
  });
});

test('a URL over 8 KiB is refused', async () => {
  const reply = await web.call('GET', `default/hello.json?a=${'A'.repeat(8192)}`);
  expect([reply.status, errorOf(reply)]).toEqual([414, expect.stringContaining('414 Request-URI Too Large')]);
  const fits = await web.call('GET', `default/hello.json?a=${'A'.repeat(8000)}`);
  expect(fits.json).toMatchObject({ a: 'A'.repeat(8000) });
});

test('an action that changes is found as it is now', async () => {
  await web.put('changing', {});
  expect((await web.call('GET', 'default/changing.json')).status).toBe(404);
  await web.put('changing');
  expect((await web.call('GET', 'default/changing.json')).status).toBe(200);
  await web.api.request('DELETE', actionPath('changing'));
  expect((await web.call('GET', 'default/changing.json')).status).toBe(404);
});

test('what fails inside is a 500 without details', async () => {
  const failing = await startWebApi();
  await failing.put('hello');
  failing.api.onInvoke(() => {
    throw new Error('secret');
  });
  const reply = await failing.call('GET', 'default/hello.json', { headers: { authorization: basic(bob) } });
  expect([reply.status, errorOf(reply)]).toEqual([500, 'There was an internal server error.']);
  expect(failing.api.logLines.join('')).toContain('secret');
  await failing.api.close();
});

describe('a host of the vanity domain', () => {
  let vanity: WebApi;
  beforeAll(async () => {
    vanity = await startWebApi({ config: { vanityDomain: 'example.org' } });
    await vanity.put('hello');
    await vanity.api.request('PUT', '/api/v1/namespaces/_/packages/public', { body: {} });
    await vanity.put('public/index');
  });
  afterAll(() => vanity.api.close());

  const get = (host: string, path: string): ReturnType<WebApi['call']> =>
    vanity.api.request('GET', path, { as: null, headers: { host } });

  test('leads to web actions of the namespace', async () => {
    expect((await get('alice.example.org', '/default/hello.json/x?a=A')).json).toMatchObject({
      __ow_path: '/x',
      __ow_headers: { host: 'alice.example.org' },
      a: 'A',
    });
    expect((await get('bob.example.org', '/default/hello.json')).status).toBe(404);
  });

  test('has a page of its own', async () => {
    vanity.result({ html: '<h1>alice</h1>' });
    expect(await get('alice.example.org:80', '/')).toMatchObject({ status: 200, text: '<h1>alice</h1>' });
  });

  test('leads nowhere else', async () => {
    expect((await get('alice.example.org', '/api/v1/namespaces')).status).toBe(404);
    expect((await get('example.org', '/api/v1/namespaces')).status).toBe(401);
    expect((await get('example.org', '/ping')).text).toBe('pong');
  });
});
