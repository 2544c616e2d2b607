// Files of the console and the documentation over HTTP.
import { createServer, get } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { createLogger } from '@gpuwhisk/common/logging';
import { createSiteHandler } from '@gpuwhisk/controller/http/static-files';
import type { Site, SiteFiles } from '@gpuwhisk/controller/http/static-files';

const filesOf = (texts: Record<string, string>): SiteFiles =>
  new Map(Object.entries(texts).map(([path, text]) => [path, () => Promise.resolve(Buffer.from(text))]));
const consoleFiles = filesOf({
  'index.html': '<title>page</title>',
  'assets/index-1.js': 'start();',
  'assets/notes.txt': 'of no known type',
});
const docsFiles = filesOf({
  'index.html': '<title>map</title>',
  'gpu.html': '<title>GPUs</title>',
  'tutorials/start.html': '<title>start</title>',
  '404.html': '<title>not found</title>',
  'icons.css': 'a {}',
});

let server: Server | undefined;
afterEach(() => {
  server?.close();
});

/** Serves the console, listed by `list`, and the documentation; 418 for other paths. */
async function serve(list = (): Promise<SiteFiles> => Promise.resolve(consoleFiles)): Promise<string> {
  const docs = { root: '/docs', name: 'The documentation', list: () => Promise.resolve(docsFiles) };
  const served: Site[] = [
    { root: '/console', name: 'The console', list },
    { ...docs, hasInlinePictures: true },
  ];
  const handlers = served.map((site) => createSiteHandler(site, createLogger({ level: 'silent' })));
  server = createServer((request, response) => {
    if (!handlers.some((handle) => handle(request, response))) response.writeHead(418).end();
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The status of a path that is sent as it is: fetch would resolve its dots. */
function statusOf(url: string, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get({ port: new URL(url).port, host: '127.0.0.1', path, agent: false }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode));
    }).once('error', reject);
  });
}

test('pages run nothing but files of the server, and are in no frame', async () => {
  const url = await serve();
  for (const path of ['/console/', '/console/assets/index-1.js', '/console/nothing', '/docs/', '/docs/nothing']) {
    const { headers } = await fetch(url + path);
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("style-src 'self';");
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
  expect((await fetch(`${url}/docs/icons.css`)).headers.get('cache-control')).toBe('no-cache');
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

test('pages are found without their ending, and a missing one is a page, too', async () => {
  const url = await serve();
  const answers = [];
  for (const path of ['/docs', '/docs/gpu', '/docs/gpu.html', '/docs/tutorials/start', '/docs/tutorials/', '/docs/x']) {
    const { status, text } = await fetch(url + path).then(async (got) => ({
      status: got.status,
      text: await got.text(),
    }));
    answers.push(`${path} ${status} ${/<title>(.*)<\/title>/.exec(text)?.[1]}`);
  }
  expect(answers).toEqual([
    '/docs 200 map',
    '/docs/gpu 200 GPUs',
    '/docs/gpu.html 200 GPUs',
    '/docs/tutorials/start 200 start',
    '/docs/tutorials/ 404 not found',
    '/docs/x 404 not found',
  ]);
});

test.each(['/docs/../package.json', '/docs/%2e%2e/package.json', '/docs/..%2fpackage.json', '/docs//etc/passwd'])(
  'no path leaves the site: %s',
  async (path) => {
    expect(await statusOf(await serve(), path)).toBe(404);
  },
);

test('a server without a built console says so, and tries again at the next request', async () => {
  let tries = 0;
  const url = await serve(() =>
    (tries += 1) === 1 ? Promise.reject(new Error('no folder')) : Promise.resolve(consoleFiles),
  );
  const first = await fetch(`${url}/console/`);
  expect([first.status, await first.text()]).toEqual([404, 'The console was not built: npm run build makes it.']);
  expect((await fetch(`${url}/console/`)).status).toBe(200);
});
