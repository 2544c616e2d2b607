import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { putIdentity } from '@gpuwhisk/controller/authentication/authentication';
import { actionPath, alice, basic, bob, errorOf, hello, startApi } from './harness.js';
import type { Api } from './harness.js';

const missing = 'The resource requires authentication, which was not supplied with the request';
const invalid = 'The supplied authentication is invalid';
const challenge = 'Basic realm="OpenWhisk secure realm",charset=UTF-8';

let api: Api;
beforeAll(async () => {
  api = await startApi({ limits: { invocationsPerMinute: 60, firesPerMinute: 60 } });
});
afterAll(() => api.close());

describe('credentials', () => {
  test('missing ones are refused with a challenge, before the path is looked at', async () => {
    for (const path of ['/api/v1/namespaces', '/api/v1/nowhere', actionPath('x')]) {
      const reply = await api.request('GET', path, { as: null });
      expect([reply.status, errorOf(reply)]).toEqual([401, missing]);
      expect(reply.headers['www-authenticate']).toBe(challenge);
      expect(reply.headers['access-control-allow-origin']).toBeUndefined();
      expect(reply.headers['content-type']).toBe('application/json');
    }
  });

  test.each([
    ['another scheme counts as none', 'Bearer token', missing],
    ['a wrong key', basic({ uuid: alice.uuid, key: 'x'.repeat(64) }), invalid],
    ["another one's uuid", basic({ uuid: bob.uuid, key: alice.key }), invalid],
    ['a short key', basic({ uuid: alice.uuid, key: 'short' }), invalid],
    ['a blank uuid', basic({ uuid: ' ', key: alice.key }), invalid],
    ['no colon', `Basic ${Buffer.from('nocolon').toString('base64')}`, invalid],
    ['no base64', 'Basic %%%', invalid],
    ['something endless', `Basic ${'A'.repeat(6000)}`, invalid],
  ])('%s', async (_, authorization, text) => {
    const reply = await api.request('GET', '/api/v1/namespaces', { as: null, headers: { authorization } });
    expect([reply.status, errorOf(reply)]).toEqual([401, text]);
    expect(reply.headers['www-authenticate']).toBe(challenge);
  });

  test('right ones are remembered, and then answered at once', async () => {
    expect(api.controller.identities.cached(basic(bob))).toBeUndefined();
    expect((await api.request('GET', '/api/v1/namespaces', { as: bob })).json).toEqual(['bob']);
    expect(api.controller.identities.cached(basic(bob))).toMatchObject({
      subject: 'bob-subject',
      namespace: { name: 'bob', uuid: 'bob-uuid' },
      authkey: { api_key: `bob-uuid:${bob.key}` },
      rights: ['READ', 'PUT', 'DELETE', 'ACTIVATE'],
    });
    expect(api.controller.identities.cached(undefined)).toBeUndefined();
  });

  test('a blocked subject is unknown', async () => {
    const blocked = { subject: 'blocked', namespace: 'blocked', uuid: 'blocked-uuid', key: 'c'.repeat(64) };
    const { subject, namespace, uuid, key } = blocked;
    const document = { _id: subject, subject, namespaces: [{ name: namespace, uuid, key }], blocked: true };
    await api.store.put('subjects', document);
    expect((await api.request('GET', '/api/v1/namespaces', { as: blocked })).status).toBe(401);
  });
});

describe('paths', () => {
  test('an unknown one is 404, with credentials under /api/v1 and without elsewhere', async () => {
    const text = 'The requested resource could not be found.';
    for (const path of ['/api/v1/nowhere', '/api/v1/namespaces/_/nowhere', '/api/v1/namespaces/_/activations/x/y/z']) {
      const reply = await api.request('GET', path);
      expect([reply.status, errorOf(reply)]).toEqual([404, text]);
    }
    const reply = await api.request('GET', '/nowhere', { as: null });
    expect([reply.status, errorOf(reply)]).toEqual([404, text]);
  });

  test.each([
    ['PATCH', actionPath('x'), 'PUT, GET, DELETE, POST'],
    ['POST', '/api/v1/namespaces/_/actions', 'GET'],
    ['DELETE', '/api/v1/namespaces', 'GET'],
    ['PUT', '/api/v1/namespaces/_/limits', 'GET'],
    ['POST', '/api/v1/namespaces/_/activations', 'GET'],
    ['DELETE', `/api/v1/namespaces/_/activations/${'a'.repeat(32)}`, 'GET'],
    ['POST', '/', 'GET'],
  ])('%s %s is not allowed', async (method, path, methods) => {
    const reply = await api.request(method, path);
    expect([reply.status, errorOf(reply)]).toEqual([405, `HTTP method not allowed, supported methods: ${methods}`]);
    expect(reply.headers.allow).toBe(methods);
    expect(reply.headers['access-control-allow-origin']).toBeUndefined();
  });

  test('a method that is not allowed needs credentials too', async () => {
    expect((await api.request('PATCH', actionPath('x'), { as: null })).status).toBe(401);
  });

  test('OPTIONS is answered anywhere, without credentials', async () => {
    const reply = await api.request('OPTIONS', '/api/v1/any/where', { as: null });
    expect(reply.status).toBe(200);
    expect(reply.headers).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-headers': 'Authorization, Origin, X-Requested-With, Content-Type, Accept, User-Agent',
      'access-control-allow-methods': 'GET, DELETE, POST, PUT, HEAD',
    });
    const server = await api.request('OPTIONS', '/invokers', { as: null });
    expect(server.headers['access-control-allow-methods']).toBe('OPTIONS, GET, POST');
  });

  test('HEAD is GET without the body', async () => {
    const get = await api.request('GET', '/api/v1/namespaces');
    const head = await api.request('HEAD', '/api/v1/namespaces');
    expect([head.status, head.text]).toEqual([200, '']);
    expect(head.headers['content-length']).toBe(get.headers['content-length']);
    expect((await api.request('HEAD', actionPath('nothing'))).status).toBe(404);
  });

  test('a URI over 8 KiB is refused', async () => {
    const reply = await api.request('GET', `/api/v1/namespaces?x=${'y'.repeat(8192)}`);
    expect([reply.status, errorOf(reply)]).toEqual([
      414,
      '414 Request-URI Too Large: at most 8192 characters are allowed',
    ]);
  });

  test('a client that does not take JSON is refused', async () => {
    const text = 'Resource representation is only available with these types:\napplication/json';
    for (const accept of ['text/plain', 'text/html, application/json;q=0']) {
      const reply = await api.request('GET', '/api/v1/namespaces', { headers: { accept } });
      expect([reply.status, errorOf(reply)]).toEqual([406, text]);
    }
    for (const accept of ['application/json', 'text/html, */*;q=0.1', 'application/*']) {
      expect((await api.request('GET', '/api/v1/namespaces', { headers: { accept } })).status).toBe(200);
    }
  });
});

describe('transaction ids', () => {
  test("the client's is kept, and is the code of an error", async () => {
    const reply = await api.request('GET', actionPath('nothing'), { headers: { 'x-request-id': 'mine' } });
    expect(reply.headers['x-request-id']).toBe('mine');
    expect(reply.json).toEqual({ error: 'The requested resource does not exist.', code: 'mine' });
  });

  test('a new one is made where there is none, it is endless, or it claims to be the system', async () => {
    const headers: Record<string, string>[] = [
      {},
      { 'x-request-id': 'sid_invokerHealth' },
      { 'x-request-id': 'x'.repeat(257) },
    ];
    for (const given of headers) {
      const reply = await api.request('GET', '/ping', { headers: given });
      expect(reply.headers['x-request-id']).toMatch(/^[0-9A-Za-z]{32}$/);
    }
  });

  test('X-OW-EXTRA-LOGGING logs this request', async () => {
    const extra = { 'x-ow-extra-logging': 'on', 'x-request-id': 'extra' };
    await api.request('GET', '/ping', { headers: extra });
    await api.request('GET', '/ping', { headers: { 'x-request-id': 'quiet' } });
    const lines = api.logLines.map((line) => JSON.parse(line) as { transid: string; path: string });
    expect(lines.filter((line) => line.transid === 'extra')).toMatchObject([{ path: '/ping' }]);
    expect(lines.filter((line) => line.transid === 'quiet')).toEqual([]);
  });
});

describe('namespaces', () => {
  test('both spellings list the own one', async () => {
    for (const path of ['/api/v1/namespaces', '/api/v1/namespaces/']) {
      const reply = await api.request('GET', path);
      expect([reply.status, reply.json]).toEqual([200, ['alice']]);
      expect(reply.headers['access-control-allow-origin']).toBe('*');
    }
  });

  test.each([
    ['GET', '/api/v1/namespaces/bob/actions', 'bob'],
    ['GET', '/api/v1/namespaces/bob/actions/x', 'bob/x'],
    ['PUT', '/api/v1/namespaces/bob/actions/x', 'bob/x'],
    ['POST', '/api/v1/namespaces/bob/actions/x', 'bob/x'],
    ['DELETE', '/api/v1/namespaces/bob/actions/x', 'bob/x'],
    ['GET', '/api/v1/namespaces/bob/actions/p/x', 'bob/p'],
    ['GET', '/api/v1/namespaces/bob/activations', 'bob'],
    ['GET', `/api/v1/namespaces/bob/activations/${'a'.repeat(32)}`, `bob/${'a'.repeat(32)}`],
    ['GET', '/api/v1/namespaces/bob/limits', 'bob'],
  ])("another's: %s %s is forbidden", async (method, path, resource) => {
    const reply = await api.request(method, path, method === 'PUT' ? { body: hello } : {});
    const text = `The supplied authentication is not authorized to access '${resource}'.`;
    expect([reply.status, errorOf(reply)]).toEqual([403, text]);
    expect(reply.headers['access-control-allow-origin']).toBe('*');
  });

  test('the own one may be named', async () => {
    expect((await api.request('GET', '/api/v1/namespaces/alice/actions')).status).toBe(200);
  });

  test("limits are the system's, and the own ones capped by them", async () => {
    const system = await api.request('GET', '/api/v1/namespaces/_/limits');
    expect(system.json).toEqual({
      invocationsPerMinute: 60,
      concurrentInvocations: 30,
      firesPerMinute: 60,
      storedMiB: 10_240,
      storedBytes: 0,
      minActionMemory: 128,
      maxActionMemory: 512,
      minActionLogs: 0,
      maxActionLogs: 10,
      minActionTimeout: 100,
      maxActionTimeout: 300000,
      minActionConcurrency: 1,
      maxActionConcurrency: 1,
      maxParameterSize: '1 MB',
      maxActionInstances: 30,
      maxActionCodeBytes: 48 * 1024 * 1024,
    });
    const carol = { subject: 'carol', namespace: 'carol', uuid: 'carol-uuid', key: 'd'.repeat(64) };
    await putIdentity(api.store, carol);
    await api.store.put('subjects', {
      _id: 'carol/limits',
      concurrentInvocations: 7,
      maxActionMemory: 4096,
      minActionMemory: 256,
      maxParameterSize: '4 KB',
      allowedKinds: ['nodejs:20'],
      storeActivations: false,
    });
    const own = await api.request('GET', '/api/v1/namespaces/carol/limits/', { as: carol });
    expect(own.json).toMatchObject({
      concurrentInvocations: 7,
      maxActionInstances: 7,
      minActionMemory: 256,
      maxActionMemory: 512,
      maxParameterSize: '4 KB',
      allowedKinds: ['nodejs:20'],
      storeActivations: false,
    });
  });
});
