import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { JsonValue } from '@gpuwhisk/common/json';
import { alice, bob, errorOf } from './harness.js';
import type { Account, Reply } from './harness.js';
import { startWebApi, webMethods } from './web-harness.js';
import type { WebApi } from './web-harness.js';

let web: WebApi;
beforeAll(async () => {
  web = await startWebApi();
  await web.put('hello');
  await web.put('custom', { 'web-export': true, 'web-custom-options': true });
});
afterAll(() => web.api.close());
beforeEach(() => web.result(undefined));

const allMethods = 'OPTIONS, GET, DELETE, POST, PUT, HEAD, PATCH';
const allHeaders = 'Authorization, Origin, X-Requested-With, Content-Type, Accept, User-Agent';

describe('web-export', () => {
  test.each<[JsonValue, number]>([
    [true, 200],
    [false, 404],
    ['true', 404],
    [1, 404],
    [null, 404],
  ])('%j: %d', async (value, status) => {
    await web.put('exported', { 'web-export': value });
    expect((await web.call('GET', 'default/exported.json')).status).toBe(status);
  });
});

describe('require-whisk-auth', () => {
  const needed = 'The resource requires authentication, which was not supplied with the request';
  const secret = 'Sesame 1';

  const call = async (wanted: JsonValue, given?: string, as: Account | null = null, method = 'GET'): Promise<Reply> => {
    await web.put('guarded', { 'web-export': true, 'require-whisk-auth': wanted });
    return web.call(method, 'default/guarded.json', {
      as,
      ...(given !== undefined && { headers: { 'X-Require-Whisk-Auth': given } }),
    });
  };

  test.each<[JsonValue, string | undefined, Account | null, number]>([
    [true, undefined, null, 401],
    [true, 'true', null, 401],
    [true, undefined, alice, 200],
    [true, undefined, bob, 200],
    [true, undefined, { ...bob, key: 'x'.repeat(64) }, 401],
    [false, undefined, null, 200],
    [secret, undefined, null, 401],
    [secret, `${secret}-bad`, null, 401],
    [secret, secret.toUpperCase(), null, 401],
    [secret, secret, null, 200],
    [secret, secret, bob, 200],
    [secret, undefined, alice, 401],
    [4711, '4711', null, 200],
    [4711, '4712', null, 401],
    [4711, undefined, alice, 401],
    ['', undefined, null, 401],
    [null, undefined, alice, 401],
    [{}, '{}', alice, 401],
    [[], undefined, alice, 401],
  ])('%j with header %j as %j: %d', async (wanted, given, as, status) => {
    const before = web.api.invocations.length;
    const reply = await call(wanted, given, as);
    expect(reply.status).toBe(status);
    if (status === 200) return;
    expect([errorOf(reply), reply.headers['www-authenticate']]).toEqual([needed, undefined]);
    expect(reply.headers['access-control-allow-origin']).toBe('*');
    expect(web.api.invocations).toHaveLength(before);
  });

  test.each(webMethods)('%s', async (method) => {
    expect((await call(secret, undefined, null, method)).status).toBe(method === 'OPTIONS' ? 200 : 401);
    expect((await call(true, undefined, null, method)).status).toBe(method === 'OPTIONS' ? 200 : 401);
  });
});

describe('CORS', () => {
  test.each(webMethods)('%s', async (method) => {
    for (const extension of ['http', 'json']) {
      for (const name of ['Access-Control-Request-Headers', 'x-custom-header']) {
        const before = web.api.invocations.length;
        web.result({});
        const reply = await web.call(method, `default/hello.${extension}`, { headers: { [name]: 'x-custom-header' } });
        const echoed = name === 'Access-Control-Request-Headers';
        expect(reply.headers).toMatchObject({
          'access-control-allow-origin': '*',
          'access-control-allow-methods': allMethods,
          'access-control-allow-headers': echoed ? 'x-custom-header' : allHeaders,
        });
        if (method === 'OPTIONS') expect([reply.status, reply.text]).toEqual([200, '']);
        expect(web.api.invocations).toHaveLength(method === 'OPTIONS' ? before : before + 1);
      }
    }
  });

  test('the platform’s headers win over the action’s, others stay', async () => {
    const headers = { 'Access-Control-Allow-Origin': 'https://a', 'access-control-allow-credentials': 'true' };
    web.result({ headers });
    expect((await web.call('GET', 'default/hello.http')).headers).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-credentials': 'true',
    });
  });
});

describe('web-custom-options', () => {
  const headers = {
    'Access-Control-Allow-Origin': 'Origin set from Web Action',
    'Access-Control-Allow-Methods': 'OPTIONS, GET, PATCH',
    'Access-Control-Allow-Headers': 'Headers set from Web Action',
    Location: 'openwhisk.org',
    'Set-Cookie': ['a=b', 'c=d'],
  };

  test('the action answers OPTIONS, and nothing is added', async () => {
    web.result({ headers, statusCode: 200 });
    const reply = await web.call('OPTIONS', 'default/custom.http', {
      headers: { 'Access-Control-Request-Headers': 'x-custom-header' },
    });
    expect(reply.status).toBe(200);
    expect(reply.headers).toMatchObject({
      'access-control-allow-origin': 'Origin set from Web Action',
      'access-control-allow-methods': 'OPTIONS, GET, PATCH',
      'access-control-allow-headers': 'Headers set from Web Action',
      location: 'openwhisk.org',
      'set-cookie': ['a=b', 'c=d'],
    });
    expect(web.arguments()).toMatchObject({ __ow_method: 'options' });
  });

  test.each(webMethods)('%s carries no CORS header of the platform', async (method) => {
    web.result({});
    const { headers: got } = await web.call(method, 'default/custom.http');
    expect(Object.keys(got).filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  test('OPTIONS needs no credentials, the rest does', async () => {
    const annotations = { 'web-export': true, 'web-custom-options': true, 'require-whisk-auth': true };
    await web.put('customGuarded', annotations);
    expect((await web.call('OPTIONS', 'default/customGuarded.json')).status).toBe(200);
    const refused = await web.call('GET', 'default/customGuarded.json');
    expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([401, undefined]);
    expect((await web.call('GET', 'default/customGuarded.json', { as: bob })).status).toBe(200);
  });

  test('only true itself counts', async () => {
    await web.put('customByWord', { 'web-export': true, 'web-custom-options': 'true' });
    expect((await web.call('OPTIONS', 'default/customByWord.http')).headers).toMatchObject({
      'access-control-allow-methods': allMethods,
    });
  });
});

describe('throttles', () => {
  test('count for the namespace in the URL, whoever calls', async () => {
    const throttled = await startWebApi({ limits: { invocationsPerMinute: 0 } });
    await throttled.put('hello');
    for (const as of [null, alice, bob]) {
      for (const method of webMethods) {
        const reply = await throttled.call(method, 'default/hello.text/content/z', { as });
        expect([method, reply.status]).toEqual([method, 429]);
        if (method !== 'HEAD') expect(errorOf(reply)).toMatch(/^Too many requests in the last minute/);
      }
    }
    expect(throttled.api.invocations).toEqual([]);
    await throttled.api.store.put('subjects', { _id: 'bob/limits', invocationsPerMinute: 10 });
    expect((await throttled.call('GET', 'default/hello.json', { as: bob })).status).toBe(429);
    expect((await throttled.call('GET', 'default/nothing.json')).status).toBe(404);
    await throttled.api.close();
  });
});
