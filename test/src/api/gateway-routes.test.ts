import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { alice, basic } from './harness.js';
import type { Reply } from './harness.js';
import { startGatewayApi, swaggerOf } from './gateway-harness.js';
import type { GatewayApi, Json } from './gateway-harness.js';

let gateway: GatewayApi;
beforeAll(async () => {
  gateway = await startGatewayApi();
  await gateway.put('hello');
  await gateway.put('guarded', { 'web-export': true, 'require-whisk-auth': 'the secret' });
});
afterAll(() => gateway.close());
beforeEach(() => gateway.result(undefined));

/** The arguments that the action was called with, from its JSON answer. */
const echoed = (reply: Reply): Json => {
  expect(reply.status).toBe(200);
  return reply.json as Json;
};

describe('a route', () => {
  test('calls its action with query, body, headers and method', async () => {
    await gateway.route('/club', '/books', 'post', 'hello');
    const reply = await gateway.visit('POST', '/club/books?page=2&tag=a%20b', {
      body: { isbn: 1 },
      headers: { 'x-own': 'mine' },
    });
    expect(echoed(reply)).toMatchObject({ page: '2', tag: 'a b', isbn: 1, __ow_method: 'post', __ow_path: '' });
    expect(echoed(reply).__ow_headers).toMatchObject({
      'x-own': 'mine',
      'x-forwarded-url': expect.stringMatching(
        /^http:\/\/127\.0\.0\.1:\d+\/api\/alice-uuid\/club\/books\?page=2&tag=a%20b$/,
      ),
    });
    expect(gateway.api.invocations.at(-1)).toMatchObject({ identity: { subject: alice.subject } });
  });

  test('is reached below the name of the namespace, too', async () => {
    await gateway.route('/club', '/named', 'get', 'hello');
    expect((await gateway.get('/api/alice/club/named')).status).toBe(200);
    expect((await gateway.get('/api/bob/club/named')).status).toBe(404);
  });

  test('answers as its action answers: status, headers, body, errors', async () => {
    await gateway.route('/club', '/http', 'get', 'hello', { responseType: 'http' });
    gateway.result({ statusCode: 418, headers: { 'x-tea': 'green', 'set-cookie': ['a=1', 'b=2'] }, body: 'short' });
    const reply = await gateway.visit('GET', '/club/http');
    expect([reply.status, reply.text, reply.headers['x-tea']]).toEqual([418, 'short', 'green']);
    expect(reply.headers['set-cookie']).toEqual(['a=1', 'b=2']);
    gateway.result({ error: 'no' }, 2);
    expect((await gateway.visit('GET', '/club/http')).status).toBe(400);
    await gateway.route('/club', '/gone', 'get', 'nothing');
    expect((await gateway.visit('GET', '/club/gone')).json).toMatchObject({
      error: 'The requested resource does not exist.',
    });
  });

  test('has the path of an http action begin with the base path', async () => {
    const pathParameters = [{ name: 'isbn', in: 'path', required: true, type: 'string' }];
    gateway.result({ body: 'x' });
    await gateway.route('/club', '/books/{isbn}', 'get', 'hello', { responseType: 'http', pathParameters });
    for (const isbn of ['978-0596517748', 'caf%C3%A9', 'a%20b', 'x:y,z']) {
      expect((await gateway.visit('GET', `/club/books/${isbn}?a=1`)).status).toBe(200);
      expect(gateway.arguments()).toMatchObject({ __ow_path: `/club/books/${isbn}`, a: '1' });
    }
  });

  test('shows the key of an action that requires one, whatever the caller sends', async () => {
    await gateway.route('/club', '/guarded', 'get', 'guarded', { secureKey: 'the secret' });
    await gateway.route('/club', '/unguarded', 'get', 'guarded');
    const headers = { 'x-require-whisk-auth': 'a guess' };
    expect((await gateway.visit('GET', '/club/guarded', { headers })).status).toBe(200);
    expect((await gateway.visit('GET', '/club/unguarded', { headers })).status).toBe(401);
  });

  test('is gone when it is deleted, and changes at once', async () => {
    await gateway.route('/brief', '/a', 'get', 'hello');
    expect((await gateway.visit('GET', '/brief/a')).status).toBe(200);
    await gateway.route('/brief', '/b', 'get', 'hello');
    expect((await gateway.visit('GET', '/brief/b')).status).toBe(200);
    await gateway.manage('deleteApi', { basepath: '/brief', relpath: '/a' });
    expect((await gateway.visit('GET', '/brief/a')).status).toBe(404);
    await gateway.manage('deleteApi', { basepath: '/brief' });
    expect((await gateway.visit('GET', '/brief/b')).status).toBe(404);
  });

  test('of a document that sets headers and a method has them', async () => {
    const url = `https://whisk.test/api/v1/web/${alice.namespace}/default/hello.json`;
    const set = (name: string, value: string): Json => ({
      'set-variable': { actions: [{ set: `message.headers.${name}`, value }] },
    });
    const assembly = {
      execute: [
        set('Authorization', basic(alice)),
        {
          'operation-switch': {
            case: [
              {
                operations: ['get/a'],
                execute: [set('X-Case', 'one'), { invoke: { 'target-url': url, verb: 'put' } }],
              },
            ],
          },
        },
      ],
    };
    await gateway.importSwagger(swaggerOf('/set', ['/a'], { 'x-ibm-configuration': { assembly } }));
    const reply = await gateway.visit('GET', '/set/a', { headers: { 'x-case': 'none' } });
    expect(echoed(reply)).toMatchObject({ __ow_method: 'put', __ow_user: alice.namespace });
    expect(echoed(reply).__ow_headers).toMatchObject({ 'x-case': 'one' });
  });

  test('of a document with one target for all is served', async () => {
    const url = `https://whisk.test/api/v1/web/${alice.namespace}/default/hello.json`;
    const assembly = { execute: [{ invoke: { 'target-url': `${url}/$(request.path)`, verb: 'keep' } }] };
    const paths = { '/a': { get: { operationId: 'a' } }, '/b': { delete: { operationId: 'b' } } };
    await gateway.importSwagger(swaggerOf('/all', [], { paths, 'x-gateway-configuration': { assembly } }));
    expect(echoed(await gateway.visit('DELETE', '/all/b'))).toMatchObject({ __ow_path: '/all/b' });
  });
});

describe('which route', () => {
  beforeAll(async () => {
    await gateway.importSwagger(swaggerOf('/pick', ['/', '/a', '/a/{x}', '/a/fixed', '/a/{x}/end', '/{y}/b']));
    await gateway.importSwagger(swaggerOf('/pick/a', ['/fixed/deep']));
  });
  const ids = (): unknown => gateway.api.invocations.at(-1);
  test.each([
    ['/pick', 200],
    ['/pick/', 200],
    ['/pick/a', 200],
    ['/pick/a/', 200],
    ['/pick/a/fixed', 200],
    ['/pick//a///fixed', 200],
    ['/pick/a/fixed/deep', 200],
    ['/pick/a/fixed/and/more', 200],
    ['/pick/unknown', 200],
    ['/picky', 404],
    ['/', 404],
    ['', 404],
    ['/Pick/a', 404],
    ['/pick/../club', 404],
    ['/pick/a/%2e%2e/b', 404],
    ['/pick/a/..%2fb', 404],
    ['/pick/a/x%2Fy', 404],
    ['/pick/a/%', 404],
    ['/pick/a/%00', 404],
    ['/pick/a/x%5Cy', 404],
  ])('%s is answered %i', async (path, status) => {
    gateway.result({ body: 'x' });
    const before = ids();
    const reply = await gateway.visit('GET', path);
    expect(reply.status).toBe(status);
    if (status === 404) {
      expect([reply.json, reply.headers['content-type']]).toEqual([
        { status: 404, message: 'Error: Not found.' },
        'application/json; charset=utf-8',
      ]);
      expect(ids()).toBe(before);
    } else {
      expect(gateway.arguments().__ow_path).toBe(path.replaceAll(/\/+/g, '/').replace(/\/$/, ''));
    }
  });

  test('text goes before parameters, and the longest path before both', async () => {
    const url = `https://h/api/v1/web/${alice.namespace}/default/hello.http$(request.path)`;
    const verbs: Record<string, string> = { '/{a}/b': 'get', '/a/{b}': 'put', '/a/b': 'post', '/a/b/{c}': 'delete' };
    const paths = Object.fromEntries(
      Object.entries(verbs).map(([path, verb]) => [
        path,
        { get: { operationId: verb, parameters: ['a', 'b', 'c'].map((name) => ({ name })) } },
      ]),
    );
    const cases = Object.values(verbs).map((verb) => ({
      operations: [verb],
      execute: [{ invoke: { 'target-url': url, verb } }],
    }));
    const assembly = { execute: [{ 'operation-switch': { case: cases } }] };
    await gateway.importSwagger(swaggerOf('/prefer', [], { paths, 'x-gateway-configuration': { assembly } }));
    gateway.result({ body: 'x' });
    const chosen: unknown[] = [];
    for (const path of ['/x/b', '/a/x', '/a/b', '/a/b/x']) {
      await gateway.visit('GET', `/prefer${path}`);
      chosen.push(gateway.arguments().__ow_method);
    }
    expect(chosen).toEqual(['get', 'put', 'post', 'delete']);
  });
});

describe('the gateway refuses', () => {
  test('verbs that a path does not have', async () => {
    await gateway.route('/verbs', '/a', 'get', 'hello');
    const reply = await gateway.visit('PUT', '/verbs/a');
    expect([reply.status, reply.json]).toEqual([404, { status: 404, message: 'Error: Whoops. Verb not supported.' }]);
  });

  test('operations without an action', async () => {
    await gateway.importSwagger(swaggerOf('/empty', [], { paths: { '/a': { get: {} } } }));
    const reply = await gateway.visit('GET', '/empty/a');
    expect([reply.status, reply.text]).toEqual([
      502,
      '{"code":502, "message":"Oops. Something went wrong. Check your URI and try again."}\n',
    ]);
  });

  test('long URIs and bodies', async () => {
    await gateway.route('/long', '/a', 'post', 'hello');
    expect((await gateway.visit('GET', `/long/${'a'.repeat(9000)}`)).status).toBe(414);
    expect((await gateway.visit('POST', '/long/a', { body: { text: 'x'.repeat(2 ** 20) } })).status).toBe(413);
  });

  test("what is not an API's", async () => {
    for (const path of ['/', '/api', '/api/', '/api/v1/namespaces', '/ping', '*', '/api/nobody/club/books']) {
      const reply = await gateway.get(path, { as: alice });
      expect([path, reply.status]).toEqual([path, 404]);
    }
  });
});

describe('CORS', () => {
  const cors = (enabled: boolean): Json => ({
    'x-gateway-configuration': { assembly: { execute: [] }, cors: { enabled } },
  });
  const corsHeaders = ({ headers }: Reply): Json =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('access-control-')));
  const origin = { origin: 'https://shop.test' };
  const allowed = {
    'access-control-allow-origin': 'https://shop.test',
    'access-control-allow-methods': 'GET, POST, PUT, DELETE, PATCH, HEAD, OPTIONS',
    'access-control-allow-credentials': 'true',
  };

  test('is answered by the gateway for APIs that are made with endpoints', async () => {
    await gateway.route('/cors', '/a', 'get', 'hello');
    expect(corsHeaders(await gateway.visit('GET', '/cors/a', { headers: origin }))).toMatchObject(allowed);
    expect(corsHeaders(await gateway.visit('GET', '/cors/a'))).toMatchObject({ 'access-control-allow-origin': '*' });
    expect(corsHeaders(await gateway.visit('PUT', '/cors/a', { headers: origin }))).toEqual(allowed);
    const before = gateway.api.invocations.length;
    const headers = { ...origin, 'access-control-request-headers': 'x-one, x-two' };
    const preflight = await gateway.visit('OPTIONS', '/cors/a', { headers });
    expect([preflight.status, preflight.text]).toEqual([200, '']);
    expect(corsHeaders(preflight)).toEqual({ ...allowed, 'access-control-allow-headers': 'x-one, x-two' });
    expect(gateway.api.invocations.length).toBe(before);
  });

  test("is taken away where a document says so, and the action's where it says nothing", async () => {
    await gateway.importSwagger(swaggerOf('/closed', ['/a'], cors(false)));
    expect(corsHeaders(await gateway.visit('GET', '/closed/a', { headers: origin }))).toEqual({});
    expect((await gateway.visit('OPTIONS', '/closed/a', { headers: origin })).status).toBe(404);
    await gateway.importSwagger(swaggerOf('/silent', ['/a']));
    expect(corsHeaders(await gateway.visit('GET', '/silent/a', { headers: origin }))).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'OPTIONS, GET, DELETE, POST, PUT, HEAD, PATCH',
    });
  });
});

test('a request id is kept', async () => {
  await gateway.route('/ids', '/a', 'get', 'hello');
  const headers = { 'x-request-id': 'chosen' };
  for (const path of ['/ids/a', '/ids/b']) {
    expect((await gateway.visit('GET', path, { headers })).headers['x-request-id']).toBe('chosen');
  }
});
