// The console's listener, an origin without pages of tenants, and the way to it from the API's.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { needsCredentials } from '@gpuwhisk/controller/http/route';
import type { Site } from '@gpuwhisk/controller/http/static-files';
import { basic, actionPath, alice, operator, send } from './harness.js';
import type { ApiSettings, Reply, RequestOptions } from './harness.js';
import { startWebApi } from './web-harness.js';
import type { WebApi } from './web-harness.js';

const site = (root: string, name: string): Site => ({
  ...{ root, name },
  list: () => Promise.resolve(new Map([['index.html', () => Promise.resolve(Buffer.from(name))]])),
});
const sites = [site('/console', 'The console'), site('/docs', 'The documentation')];

let web: WebApi;
beforeAll(async () => {
  web = await startWebApi({ sites, config: { vanityDomain: 'web.test' } });
  await web.put('page');
});
afterAll(() => web.api.close());

/** A request to the console's listener, without credentials unless `as` is given. */
const atConsole = (method: string, path: string, options: RequestOptions = {}): Promise<Reply> =>
  send(web.api.consolePort, method, path, { as: null, ...options });

describe("the console's listener", () => {
  test('serves the sites and the API to callers with a key', async () => {
    expect((await atConsole('GET', '/console/')).text).toBe('The console');
    expect((await atConsole('GET', '/docs/')).text).toBe('The documentation');
    expect((await atConsole('GET', '/')).json).toHaveProperty('runtimes');
    expect((await atConsole('GET', '/api/v1/viewer', { as: alice })).json).toMatchObject({ namespace: 'alice' });
    expect((await atConsole('GET', '/api/v1/admin/members', { as: operator })).status).toBe(200);
    expect((await atConsole('GET', '/api/v1/admin/members', { as: alice })).status).toBe(403);
    const run = await atConsole('POST', `${actionPath('page')}?blocking=true&result=true`, {
      as: alice,
      body: { a: 1 },
    });
    expect(run.json).toEqual({ a: 1 });
  });

  test.each([
    ['GET', '/api/v1/web/alice/default/page.json', {}],
    ['GET', '/api/v1/%77eb/alice/default/page.json', {}],
    ['GET', '/default/page.json', { host: 'alice.web.test' }],
    ['POST', '/api/v1/web/whisk.system/apimgmt/getApi.http', {}],
    ['GET', '/api/alice/club', {}],
    ['GET', '/ping', {}],
    ['GET', '/metrics', {}],
    ['GET', '/invokers', {}],
  ])('serves neither web actions nor other routes of the server: %s %s', async (method, path, headers) => {
    const before = web.api.invocations.length;
    expect((await atConsole(method, path, { headers, as: alice })).status).toBe(404);
    expect(web.api.invocations.length).toBe(before);
  });

  test('lets no page of another origin read an answer, and has browsers keep no key', async () => {
    const headers = { origin: web.api.url };
    for (const [method, path] of [
      ['GET', '/'],
      ['GET', '/api/v1/viewer'],
      ['OPTIONS', '/api/v1/viewer'],
    ] as const)
      for (const as of [alice, null]) {
        const reply = await atConsole(method, path, { headers, as });
        expect(reply.headers).not.toHaveProperty('access-control-allow-origin');
        expect(reply.headers).not.toHaveProperty('www-authenticate');
      }
  });

  test('serves nothing to functions in sandboxes, whatever their key', async () => {
    const headers = { 'x-gpuwhisk-sandbox': '1' };
    for (const path of ['/console/', '/', '/api/v1/viewer', '/api/v1/admin/members'])
      expect((await atConsole('GET', path, { headers, as: operator })).status).toBe(404);
    expect((await web.api.request('GET', '/console/', { headers, as: null })).status).toBe(404);
  });
});

test('no cookie authenticates any route of either listener', async () => {
  const { routes } = web.api.controller;
  const paths = routes.filter((route) => needsCredentials(route)).map(({ method, path }) => [method, path] as const);
  expect(paths.length).toBeGreaterThan(50);
  const secrets = [alice, operator].flatMap((account) => [basic(account), `${account.uuid}:${account.key}`]);
  const cookie = secrets
    .flatMap((secret, at) => [`authorization${at}="${secret}"`, `Authorization=${secret}`])
    .join('; ');
  const answered = new Map<string, number>();
  for (const [method, path] of paths)
    for (const port of [web.api.port, web.api.consolePort]) {
      const filled = path.replaceAll('{namespace}', '_').replaceAll(/\{\w+\}/g, 'x');
      const { status } = await send(port, method, filled, { as: null, headers: { cookie } });
      if (status !== 401) answered.set(`${port} ${method} ${path}`, status);
    }
  expect([...answered]).toEqual([]);
});

describe("the API's listener", () => {
  test.each(['127.0.0.1', 'localhost:3233', '[::1]:3233'])('leads a caller of %s to the console', async (host) => {
    const { status, headers } = await web.api.request('GET', '/docs/gpu?a=b', { as: null, headers: { host } });
    expect([status, headers.location]).toEqual([302, `${web.api.consoleUrl}/docs/gpu?a=b`]);
  });

  test.each(['evil.example', 'evil.example:3233', '127.0.0.1.evil.example', '127.0.0.1@evil.example', '???'])(
    'tells a caller of %s the port, and leads to no address of its own choice',
    async (host) => {
      const { status, headers, text } = await web.api.request('GET', '/console', { as: null, headers: { host } });
      expect([status, headers.location]).toEqual([404, undefined]);
      expect(text).toContain(`port ${web.api.consolePort} of this host`);
      expect(text).not.toContain('evil');
    },
  );

  test('changes nothing for other methods and paths', async () => {
    expect((await web.api.request('POST', '/console/', { as: null })).status).toBe(405);
    expect((await web.api.request('GET', '/consoles', { as: null })).status).toBe(404);
  });

  test.each<[string, NonNullable<ApiSettings['consoleAddress']>, unknown[]]>([
    ['the named one', { url: 'https://console.test', isConfigured: true }, [302, 'https://console.test/console']],
    ['none', 'off', [404, undefined]],
  ])("leads to the operator's address, whatever the host: %s", async (_, consoleAddress, expected) => {
    const named = await startWebApi({ sites, consoleAddress });
    try {
      const headers = { host: 'elsewhere.test' };
      const reply = await named.api.request('GET', '/console', { as: null, headers });
      expect([reply.status, reply.headers.location]).toEqual(expected);
    } finally {
      await named.api.close();
    }
  });
});
