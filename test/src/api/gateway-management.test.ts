import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DocumentConflictError } from '@gpuwhisk/common/store/artifact-store';
import { storeLike } from '../simulation/delegates.js';
import { alice, bob, errorOf } from './harness.js';
import { gatewayUrl, startGatewayApi, swaggerOf } from './gateway-harness.js';
import type { GatewayApi, Json } from './gateway-harness.js';

let gateway: GatewayApi;
beforeAll(async () => {
  gateway = await startGatewayApi();
  await gateway.put('hello');
});
afterAll(() => gateway.close());

const notConfigured = (reason: string): string =>
  `API creation failure: Unable to configure the API Gateway (status code 400): {"status":400,"message":"Error: ${reason}"}`;

interface Apis {
  apis: { id: string; key: string; value: { gwApiUrl: string; apidoc: Json & { info: Json; paths: Json } } }[];
}
const list = async (query: Record<string, string> = {}): Promise<Apis['apis']> =>
  ((await gateway.manage('getApi.http', query)).json as Apis).apis;
const pathsOf = async (basepath: string): Promise<string[]> =>
  Object.keys((await list({ basepath }))[0]?.value.apidoc.paths ?? {});

describe('an API', () => {
  test('is made with its first endpoint', async () => {
    const made = await gateway.route('/club', '/books', 'GET', 'hello', { apiName: 'Book Club' });
    expect(made.status).toBe(200);
    expect(made.headers['content-type']).toBe('application/json');
    const url = `https://whisk.test/api/v1/web/${alice.namespace}/default/hello.json`;
    const apidoc = {
      swagger: '2.0',
      info: { title: 'Book Club', version: '1.0.0' },
      basePath: '/club',
      paths: {
        '/books': {
          get: {
            operationId: 'getBooks',
            'x-openwhisk': { url, namespace: alice.namespace, package: '', action: 'hello' },
            responses: { default: { description: 'Default response' } },
          },
        },
      },
      'x-ibm-configuration': {
        assembly: {
          execute: [
            {
              'operation-switch': {
                case: [{ operations: ['getBooks'], execute: [{ invoke: { 'target-url': url, verb: 'keep' } }] }],
              },
            },
          ],
        },
        cors: { enabled: true },
      },
    };
    const value = {
      namespace: 'Not Used',
      gwApiActivated: true,
      tenantId: 'Not Used',
      gwApiUrl: `${gatewayUrl}/api/${alice.uuid}/club`,
      apidoc,
    };
    expect(made.json).toEqual(value);
    expect(await list({ basepath: '/club' })).toEqual([{ id: 'Not Used', key: 'Not Used', value }]);
    expect(await list({ basepath: 'Book Club' })).toHaveLength(1);
    expect(await list({ basepath: 'book club' })).toEqual([]);
  });

  test('grows, and an endpoint is replaced; the secret of a former action goes', async () => {
    await gateway.route('/grow', '/path/with/sub_paths', 'get', 'hello', { secureKey: 'secret', responseType: 'http' });
    await gateway.route('/grow', '/path/with/sub_paths', 'POST', 'pkg/hello', { responseType: 'http' });
    await gateway.route('/grow', '/path/with/sub_paths', 'get', 'pkg/hello', { responseType: 'http' });
    const [api] = await list({ basepath: '/grow' });
    const text = JSON.stringify(api?.value.apidoc);
    expect(text).toContain('"operationId":"getPathWithSub_paths"');
    expect(text).toContain('"package":"pkg","action":"hello"');
    expect(text).toContain('/pkg/hello.http$(request.path)","verb":"keep"');
    expect(text).not.toContain('secret');
    expect(text.match(/target-url/g)).toHaveLength(2);
    expect(api?.value.apidoc.info.title).toBe('/grow');
  });

  test('paths whose words are the same have targets of their own', async () => {
    for (const path of ['/a/b', '/a.b', '/a~b']) await gateway.route('/same', path, 'get', 'hello');
    const [api] = await list({ basepath: '/same' });
    const ids = [...JSON.stringify(api?.value.apidoc.paths).matchAll(/"operationId":"(\w+)"/g)].map(([, id]) => id);
    expect(ids).toEqual(['getAB', 'getAB_2', 'getAB_3']);
  });

  test('endpoints that are added at once are all there', async () => {
    const paths = Array.from({ length: 8 }, (_, at) => `/p${at}`);
    const replies = await Promise.all(paths.map((path) => gateway.route('/many', path, 'get', 'hello')));
    expect(replies.map((reply) => reply.status)).toEqual(paths.map(() => 200));
    expect((await pathsOf('/many')).sort()).toEqual(paths);
  });

  test('loses an operation, a path, and with the last path itself', async () => {
    for (const [path, method] of [
      ['/a', 'get'],
      ['/a', 'post'],
      ['/b', 'get'],
    ] as const) {
      await gateway.route('/shrink', path, method, 'hello', { apiName: 'Shrinking' });
    }
    const gone = async (query: Record<string, string>): Promise<unknown[]> => {
      const reply = await gateway.manage('deleteApi.http', { basepath: '/shrink', ...query });
      return [reply.status, reply.json];
    };
    expect(await gone({ relpath: '/c' })).toEqual([
      502,
      { error: "API deletion failure: path '/c' does not exist in the API" },
    ]);
    expect(await gone({ relpath: '/b', operation: 'PUT' })).toEqual([
      502,
      { error: "API deletion failure: path '/b' with operation 'put' does not exist in the API" },
    ]);
    expect(await gone({ relpath: '/a', operation: 'POST' })).toEqual([200, {}]);
    expect(JSON.stringify(await list({ basepath: '/shrink' }))).not.toContain('postA');
    expect(await gone({ relpath: '/a' })).toEqual([200, {}]);
    expect(await pathsOf('/shrink')).toEqual(['/b']);
    expect(await gone({ relpath: '/b', operation: 'get' })).toEqual([200, {}]);
    expect(await list({ basepath: '/shrink' })).toEqual([]);
  });

  test('is deleted by base path or by name', async () => {
    await gateway.route('/one', '/a', 'get', 'hello', { apiName: 'Number One' });
    expect((await gateway.manage('deleteApi.http', { basepath: 'Number One' })).json).toEqual({});
    const again = await gateway.manage('deleteApi.http', { basepath: '/one' });
    expect([again.status, again.json]).toEqual([502, { error: "API deletion failure: API '/one' does not exist." }]);
  });

  test("is its namespace's only", async () => {
    await gateway.route('/mine', '/a', 'get', 'hello');
    const theirs = await gateway.manage('getApi.http', { spaceguid: alice.uuid, namespace: 'alice' }, { as: bob });
    expect(theirs.json).toEqual({ apis: [] });
    const reply = await gateway.manage('deleteApi.http', { basepath: '/mine' }, { as: bob });
    expect(errorOf(reply)).toBe("API deletion failure: API '/mine' does not exist.");
    expect(await pathsOf('/mine')).toEqual(['/a']);
  });
});

describe('lists', () => {
  test('have skip and limit', async () => {
    const own = await startGatewayApi();
    try {
      for (const base of ['/c', '/a', '/b']) await own.route(base, '/x', 'get', 'hello');
      const bases = async (query: Record<string, string>): Promise<unknown[]> =>
        ((await own.manage('getApi', query)).json as Apis).apis.map(({ value }) => value.apidoc.basePath);
      expect(await bases({})).toEqual(['/a', '/b', '/c']);
      expect(await bases({ skip: '1', limit: '1' })).toEqual(['/b']);
      expect(await bases({ skip: '2', limit: '30' })).toEqual(['/c']);
      expect(await bases({ limit: '0' })).toEqual([]);
      expect(await bases({ limit: 'x' })).toEqual([]);
    } finally {
      await own.close();
    }
  });
});

describe('documents', () => {
  test('are imported whole, as an object or as JSON, and replace the API', async () => {
    const first = swaggerOf('/whole', ['/a', '/b']);
    const made = await gateway.importSwagger(first);
    expect([made.status, (made.json as { apidoc: Json }).apidoc]).toEqual([200, first]);
    const second = swaggerOf('/whole', ['/c']);
    expect((await gateway.importSwagger(JSON.stringify(second))).status).toBe(200);
    expect(await pathsOf('/whole')).toEqual(['/c']);
  });

  test('have bounds together, within which they may shrink and grow', async () => {
    const named = (count: number): string[] => Array.from({ length: count }, (_, at) => `/p${at}`);
    const put = async (basePath: string, swagger: Json): Promise<number> =>
      (await gateway.importSwagger({ ...swaggerOf(basePath, ['/a']), ...swagger })).status;
    const paths = (basePath: string, count: number): Promise<number> =>
      put(basePath, swaggerOf(basePath, named(count)));
    expect(await paths('/first', 1200)).toBe(200);
    expect(await paths('/second', 600)).toBe(200);
    expect(await paths('/second', 900)).toBe(502);
    expect(await paths('/third', 2001)).toBe(502);
    expect((await gateway.route('/second', '/more', 'get', 'hello')).status).toBe(200);
    expect(await paths('/first', 300)).toBe(200);
    expect(await paths('/second', 900)).toBe(200);
    const large = { info: { title: 'large', description: 'x'.repeat(700_000) } };
    expect([await put('/large1', large), await put('/large2', large)]).toEqual([200, 200]);
    const refused = await gateway.importSwagger({ ...swaggerOf('/large3', ['/a']), ...large });
    expect([refused.status, JSON.stringify(refused.json)]).toEqual([
      502,
      expect.stringMatching(
        /The APIs of the namespace would have \d{7} bytes and \d+ paths; allowed are 2097152 bytes/,
      ),
    ]);
    for (const basePath of ['/first', '/second', '/large1', '/large2']) {
      await gateway.manage('deleteApi', { basepath: basePath });
    }
    expect(await paths('/third', 1900)).toBe(200);
    await gateway.manage('deleteApi', { basepath: '/third' });
  });

  const swagger = (more: Json): Json => ({ ...swaggerOf('/bad', ['/a']), ...more });
  const withPaths = (paths: Json): Json => swagger({ paths });
  const leadingTo = (url: string): Json => withPaths({ '/a': { get: { 'x-openwhisk': { url } } } });
  test.each<[string, unknown, string]>([
    ['not JSON', '{', 'swagger field cannot be parsed. Ensure it is valid JSON.'],
    ['no object', 5, 'swagger field is number and should be an object or a JSON string.'],
    ['no basePath', swagger({ basePath: undefined }), 'swagger is missing the basePath field.'],
    ['no paths', swagger({ paths: undefined }), 'swagger is missing the paths field.'],
    ['no info', swagger({ info: undefined }), 'swagger is missing the info field.'],
    ['no title', swagger({ info: { version: '1' } }), notConfigured("Missing field 'name' in request body.")],
    ['empty paths', withPaths({}), notConfigured('Empty resources object.')],
    ['a path without slash', withPaths({ a: { get: {} } }), notConfigured("Resource path must begin with '/'.")],
    ['an unknown verb', withPaths({ '/a': { fetch: {} } }), notConfigured("Resource verb 'fetch' not supported.")],
    [
      'a path without operations',
      withPaths({ '/a': {} }),
      notConfigured("Missing or empty field 'operations' or in resource path object."),
    ],
    [
      'a quote in a path',
      withPaths({ "/it's": { get: {} } }),
      notConfigured('resource path contains illegal character \\"\'\\".'),
    ],
    [
      'dots in the base path',
      swagger({ basePath: '/a/../b' }),
      notConfigured("basePath '/a/../b' contains a segment '.' or '..'."),
    ],
    [
      'a long base path',
      swagger({ basePath: `/${'é'.repeat(200)}` }),
      notConfigured('basePath is longer than 256 bytes.'),
    ],
    [
      'parameters in the base path',
      swagger({ basePath: '/a/{b}' }),
      'API creation failure: The base path (/a/{b}) cannot have parameters. Only the relative path supports path parameters.',
    ],
    [
      'an operation without action among others',
      withPaths({ '/a': { get: {}, ...(swaggerOf('/x', ['/a']).paths as { '/a': Json })['/a'], post: {} } }),
      notConfigured(
        "Missing field 'backendUrl' for 'post' operation of '/a': it has neither x-openwhisk.url nor a target-url.",
      ),
    ],
    [
      'a target elsewhere',
      leadingTo('https://intranet.test/secrets'),
      notConfigured(
        "'https://intranet.test/secrets' is not the URL of a web action (…/api/v1/web/namespace/package/action.ext).",
      ),
    ],
    [
      'a parameter that json actions cannot see',
      withPaths({ '/{a}': { get: { 'x-openwhisk': { url: 'https://h/api/v1/web/a/b/c.json' } } } }),
      "API creation failure: The action must use a response type of '.http' in order to receive the path parameters.",
    ],
    [
      'a parameter that is not described',
      withPaths({ '/x/{a}/{b}': { get: { parameters: [{ name: 'a' }] } } }),
      "API creation failure: The parameter 'b' defined in path '/x/{a}/{b}' does not match any of the parameters defined for the path in the swagger file.",
    ],
    [
      'a security definition of another type',
      swagger({ securityDefinitions: { me: { type: 'basic' } } }),
      notConfigured("Security definition 'me' is of type 'basic'; use apiKey or oauth2."),
    ],
    [
      'an issuer that nobody knows',
      swagger({ securityDefinitions: { google: { type: 'oauth2' } } }),
      notConfigured("Security definition 'google' has no x-gateway-jwt, and no issuer of that name is configured."),
    ],
    [
      'a rate of nothing',
      swagger({ 'x-gateway-rate-limit': [{ unit: 'minute', units: 1, rate: 0 }] }),
      notConfigured('A rate limit needs a rate above zero, and units from 1 to 1000.'),
    ],
  ])('with %s are refused, and nothing is stored', async (_, document, error) => {
    const reply = await gateway.importSwagger(document);
    expect([reply.status, reply.json]).toEqual([502, { error }]);
    expect((await list()).filter(({ value }) => String(value.apidoc.basePath).startsWith('/bad'))).toEqual([]);
  });

  test('whose target lacks the path are refused', async () => {
    const target = 'https://h/api/v1/web/a/b/c.http';
    const config = {
      assembly: {
        execute: [
          {
            'operation-switch': {
              case: [{ operations: ['get/{a}'], execute: [{ invoke: { 'target-url': target, verb: 'keep' } }] }],
            },
          },
        ],
      },
    };
    const reply = await gateway.importSwagger(swaggerOf('/bad', ['/{a}'], { 'x-ibm-configuration': config }));
    expect(errorOf(reply)).toBe(
      "API creation failure: The target-url for operationId 'get/{a}' must end in '$(request.path)' in order for actions to receive the path parameters.",
    );
  });

  test('without any action are stored, as OpenWhisk stores them', async () => {
    const operations = Object.fromEntries(
      ['put', 'delete', 'get', 'head', 'options', 'patch', 'post'].map((method) => [method, { operationId: '' }]),
    );
    const made = await gateway.importSwagger(swaggerOf('/NoActions', [], { paths: { '/': operations } }));
    expect(made.status).toBe(200);
    expect(await pathsOf('/NoActions')).toEqual(['/']);
  });
});

describe('calls of createApi', () => {
  const action = { backendMethod: 'GET', backendUrl: 'u', namespace: '_', name: 'a', authkey: 'k' };
  const endpoint = { namespace: '_', gatewayBasePath: '/b', gatewayPath: '/p', gatewayMethod: 'get', action };
  test.each<[unknown, string]>([
    [undefined, 'apidoc is required.'],
    ['{', 'apidoc field cannot be parsed. Ensure it is valid JSON.'],
    [7, 'apidoc field is of type number and should be a JSON object or a JSON string.'],
    [{}, 'apidoc is missing the namespace field'],
    [{ namespace: '_' }, 'apidoc is missing the gatewayBasePath field'],
    [{ ...endpoint, gatewayPath: '' }, 'apidoc is missing the gatewayPath field'],
    [{ ...endpoint, gatewayMethod: undefined }, 'apidoc is missing the gatewayMethod field'],
    [{ ...endpoint, action: undefined }, 'apidoc is missing the action field.'],
    [{ ...endpoint, action: { ...action, backendMethod: '' } }, 'action is missing the backendMethod field.'],
    [{ ...endpoint, action: { ...action, backendUrl: undefined } }, 'action is missing the backendUrl field.'],
    [{ ...endpoint, action: { ...action, namespace: undefined } }, 'action is missing the namespace field.'],
    [{ ...endpoint, action: { ...action, name: undefined } }, 'action is missing the name field.'],
    [{ ...endpoint, action: { ...action, authkey: undefined } }, 'action is missing the authkey field.'],
    [
      { ...endpoint, swagger: {} },
      'swagger and gatewayBasePath are mutually exclusive and cannot be specified together.',
    ],
  ])('%j is refused', async (apidoc, error) => {
    const reply = await gateway.manage('createApi.http', {}, { body: { apidoc } });
    expect([reply.status, reply.json]).toEqual([502, { error }]);
  });

  test.each([
    ['badpath', 'get', "Resource path must begin with '/'."],
    ['/path', 'badverb', "Resource verb 'badverb' not supported."],
    ['/__proto__', '__proto__', "Missing or empty field 'operations' or in resource path object."],
  ])('path %s and verb %s are refused', async (path, verb, reason) => {
    const reply = await gateway.route('/basepath', path, verb, 'hello');
    expect([reply.status, errorOf(reply)]).toEqual([502, notConfigured(reason)]);
  });

  test('a base path with parameters is refused', async () => {
    expect(errorOf(await gateway.route('/bad/{path}/value', '/good', 'get', 'hello'))).toContain(
      'The base path (/bad/{path}/value) cannot have parameters. Only the relative path supports path parameters.',
    );
  });
});

describe('who calls', () => {
  test.each([
    ['createApi', 'A valid auth key is required.'],
    ['getApi', 'Invalid authentication.'],
    ['deleteApi', 'Invalid authentication.'],
    ['createSubscription', 'A valid auth key is required.'],
  ])('%s needs credentials', async (operation, error) => {
    for (const as of [null, { ...alice, key: 'x'.repeat(64) }]) {
      const reply = await gateway.manage(`${operation}.http`, { basepath: '/mine', namespace: 'alice' }, { as });
      expect([reply.status, reply.json]).toEqual([502, { error }]);
    }
  });

  test('the arguments of deleteApi are checked', async () => {
    expect(errorOf(await gateway.manage('deleteApi'))).toBe('basepath is required.');
    const reply = await gateway.manage('deleteApi', { basepath: '/x', operation: 'get' });
    expect(errorOf(reply)).toBe('When specifying an operation, the path is required.');
  });

  test('with .json the answer is the whole result of the action that OpenWhisk has', async () => {
    const reply = await gateway.manage('getApi.json', { basepath: '/nothing' });
    expect(reply.json).toEqual({
      statusCode: 200,
      headers: { 'Content-Type': 'application/json' },
      body: { apis: [] },
    });
  });

  test('OPTIONS needs none; what is not JSON is refused; other names are web actions', async () => {
    const path = '/api/v1/web/whisk.system/apimgmt';
    expect((await gateway.api.request('OPTIONS', `${path}/getApi.http`, { as: null })).status).toBe(200);
    expect((await gateway.api.request('POST', `${path}/createApi.http`, { body: '{' })).status).toBe(400);
    expect((await gateway.api.request('GET', `${path}/getapi.http`)).status).toBe(404);
    expect((await gateway.api.request('GET', `${path}/getApi.html`)).status).toBe(404);
  });

  test('a change that always loses against others is given up', async () => {
    const losing = await startGatewayApi({
      wrapStore: (store) =>
        storeLike(store, {
          put: (database, document) => {
            if (database !== 'gpu') return store.put(database, document);
            return Promise.reject(new DocumentConflictError(document._id));
          },
        }),
    });
    try {
      expect(errorOf(await losing.route('/a', '/b', 'get', 'hello'))).toBe(
        'API creation failure: Concurrent modification to resource detected.',
      );
    } finally {
      await losing.close();
    }
  });

  test('where no gateway runs, none is made', async () => {
    const without = await startGatewayApi({ gatewayUrl: undefined });
    try {
      expect(errorOf(await without.route('/a', '/b', 'get', 'hello'))).toBe(
        'API creation failure: Unable to configure the API Gateway: it is turned off on this platform.',
      );
    } finally {
      await without.close();
    }
  });
});
