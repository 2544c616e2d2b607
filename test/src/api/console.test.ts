// The console's files over HTTP.
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { createLogger } from '@gpuwhisk/common/logging';
import { createConsoleHandler } from '@gpuwhisk/controller/console/console-handler';
import { startApi } from './harness.js';

const files = new Map([
  ['index.html', Buffer.from('<title>page</title>')],
  ['assets/index-1.js', Buffer.from('start();')],
  ['assets/notes.txt', Buffer.from('of no known type')],
]);

let server: Server | undefined;
afterEach(() => {
  server?.close();
});

async function serve(read = (): Promise<ReadonlyMap<string, Buffer>> => Promise.resolve(files)): Promise<string> {
  const handle = createConsoleHandler(read, createLogger({ level: 'silent' }));
  server = createServer((request, response) => {
    if (!handle(request, response)) response.writeHead(418).end();
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('pages run nothing but files of the server, and are in no frame', async () => {
  const url = await serve();
  for (const path of ['/console/', '/console/assets/index-1.js', '/console/nothing']) {
    const { headers } = await fetch(url + path);
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  }
});

test('files come packed, and again only if they have changed', async () => {
  const url = await serve();
  const page = await fetch(`${url}/console`);
  expect([page.url, page.headers.get('content-encoding'), await page.text()]).toEqual([
    `${url}/console/`,
    'gzip',
    '<title>page</title>',
  ]);
  const tag = page.headers.get('etag') ?? '';
  expect((await fetch(`${url}/console/`, { headers: { 'if-none-match': tag } })).status).toBe(304);
  const script = await fetch(`${url}/console/assets/index-1.js`, { headers: { 'accept-encoding': 'identity' } });
  expect([script.headers.get('content-type'), script.headers.get('cache-control'), await script.text()]).toEqual([
    'text/javascript; charset=UTF-8',
    'public, max-age=31536000, immutable',
    'start();',
  ]);
});

test.each([
  ['GET', '/console/assets/notes.txt', 404],
  ['GET', '/console/../index.html', 418],
  ['GET', '/consoles', 418],
  ['POST', '/console/', 405],
  ['HEAD', '/console/', 200],
])('%s %s has status %i', async (method, path, status) => {
  expect((await fetch((await serve()) + path, { method })).status).toBe(status);
});

test('a server without a built console says so, and tries again at the next request', async () => {
  let tries = 0;
  const url = await serve(() => ((tries += 1) === 1 ? Promise.reject(new Error('no folder')) : Promise.resolve(files)));
  const first = await fetch(`${url}/console/`);
  expect([first.status, await first.text()]).toEqual([404, 'The console was not built.']);
  expect((await fetch(`${url}/console/`)).status).toBe(200);
});

test('functions in sandboxes get no console', async () => {
  const api = await startApi();
  const statuses = [];
  const kinds: Record<string, string>[] = [{}, { 'x-gpuwhisk-sandbox': '1' }];
  for (const headers of kinds) {
    const { status, text } = await api.request('GET', '/console/', { as: null, headers });
    statuses.push([status, text.includes('console')]);
  }
  await api.close();
  expect(statuses).toEqual([
    [404, true],
    [404, false],
  ]);
});
