// API routes, made and called with OpenWhisk's JavaScript client, the command line, and plain HTTP.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import openwhisk from 'openwhisk';
import { whiskSystem } from '@gpuwhisk/common/entities/identity';
import { runWsk } from '../cli/wsk-process.js';
import type { WskResult } from '../cli/wsk-process.js';
import { networkLack } from '../support/machine.js';
import { newDataDir, removeDataDir, startAndFail, startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const networked = networkLack === undefined ? test : test.skip;
let platform: RunningPlatform;
let client: openwhisk.Client;
let folder: string;
const uuid = (): string => platform.auth.split(':')[0] ?? '';

beforeAll(async () => {
  platform = await startPlatform();
  client = openwhisk({ apihost: platform.url, api_key: platform.auth });
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-gateway-'));
  const action = `function main(args) {
    return { body: { name: args.name, path: args.__ow_path, method: args.__ow_method } };
  }`;
  for (const name of ['books', 'guarded']) {
    const annotations = { 'web-export': true, ...(name === 'guarded' && { 'require-whisk-auth': 4711 }) };
    await client.actions.create({ name, action, kind: 'nodejs:default', annotations });
  }
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await platform.stop();
});

const wsk = (...words: string[]): Promise<WskResult> =>
  runWsk(['--apihost', platform.url, '--auth', platform.auth, ...words], { directory: folder });

/** The routes' part of a result that the client types as unknown. */
interface Routes {
  apis: { value: { gwApiUrl: string; apidoc: { paths: Record<string, Record<string, unknown>> } } }[];
}
const routes = async (basepath: string): Promise<Routes['apis']> =>
  ((await client.routes.list({ basepath } as never)) as unknown as Routes).apis;

test("the JavaScript client's routes: created, called, listed, deleted", async () => {
  const create = (options: object): Promise<{ gwApiUrl: string }> =>
    client.routes.create(options as never) as unknown as Promise<{ gwApiUrl: string }>;
  const { gwApiUrl } = await create({ basepath: '/club', relpath: '/books', operation: 'GET', action: 'books' });
  await create({ basepath: '/club', relpath: '/books', operation: 'POST', action: 'books' });
  await create({ basepath: '/club', relpath: '/guarded', operation: 'GET', action: 'guarded', secure_key: 4711 });
  expect(gwApiUrl).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:\\d+/api/${uuid()}/club$`));
  expect(await (await fetch(`${gwApiUrl}/books?name=Ada`)).json()).toEqual({
    body: { name: 'Ada', path: '', method: 'get' },
  });
  expect((await fetch(`${gwApiUrl}/guarded`)).status).toBe(200);
  expect((await fetch(`${gwApiUrl}/books`, { method: 'DELETE' })).status).toBe(404);
  const [api] = await routes('/club');
  expect(Object.keys(api?.value.apidoc.paths ?? {})).toEqual(['/books', '/guarded']);
  await client.routes.delete({ basepath: '/club', relpath: '/books', operation: 'POST' } as never);
  expect(Object.keys((await routes('/club'))[0]?.value.apidoc.paths['/books'] ?? {})).toEqual(['get']);
  await client.routes.delete({ basepath: '/club' } as never);
  expect(await routes('/club')).toEqual([]);
  expect((await fetch(`${gwApiUrl}/books`)).status).toBe(404);
  await expect(client.routes.delete({ basepath: '/club' } as never)).rejects.toMatchObject({
    statusCode: 502,
    message: expect.stringContaining("API deletion failure: API '/club' does not exist."),
  });
});

networked('the actions of /whisk.system/apimgmt, invoked', async () => {
  const { uuid: id, key, namespace } = whiskSystem;
  const { actions } = openwhisk({ apihost: platform.url, api_key: `${id}:${key}` });
  const call = (name: string, params: object): Promise<unknown> =>
    actions.invoke({ name: `apimgmt/${name}`, params, blocking: true, result: true });
  const who = { __ow_user: namespace, accesstoken: 'AnAccessToken', spaceguid: 'ASpaceGuid' };
  const url = `https://some.whisk.host/api/v1/web/${namespace}/default/greet.json`;
  const endpoint = {
    namespace,
    gatewayBasePath: '/sys',
    gatewayPath: '/path',
    gatewayMethod: 'get',
    apiName: 'System',
  };
  const action = { name: 'greet', namespace, backendUrl: url, backendMethod: 'get', authkey: 'secret' };
  await call('createApi', { ...who, apidoc: { ...endpoint, action } });
  const created = await call('createApi', { ...who, apidoc: { ...endpoint, gatewayPath: '/new', action } });
  expect(created).toMatchObject({ apidoc: { basePath: '/sys', info: { title: 'System' } } });
  const served = { url, namespace, action: 'greet' };
  const paths = { '/path': { get: { 'x-openwhisk': served } }, '/new': { get: { 'x-openwhisk': served } } };
  expect(await call('getApi', { ...who, basepath: '/sys' })).toMatchObject({
    apis: [{ value: { apidoc: { paths } } }],
  });
  expect(await call('deleteApi', { ...who, basepath: '/sys' })).toEqual({});
  expect(await call('getApi', { ...who, basepath: '/sys' })).toEqual({ apis: [] });

  const refusal = (name: string, params: object): Promise<unknown> =>
    call(name, params).then(
      () => undefined,
      ({ error }: { error: openwhisk.Activation<openwhisk.Dict> }) => error.response?.result.error,
    );
  expect(await refusal('getApi', {})).toBe('Invalid authentication.');
  expect(await refusal('createApi', {})).toBe('A valid auth key is required.');
  expect(await refusal('createApi', who)).toBe('apidoc is required.');
  expect(await refusal('deleteApi', who)).toBe('basepath is required.');
  expect(await refusal('deleteApi', { ...who, basepath: '/sys' })).toBe(
    "API deletion failure: API '/sys' does not exist.",
  );
  expect(await refusal('getApi', { ...who, __ow_user: 'guest' })).toBe('The namespace guest is not that of the key.');
  // The actions are in whisk.system only, and are not web actions.
  await expect(client.actions.invoke({ name: `/${namespace}/apimgmt/getApi` })).rejects.toMatchObject({
    statusCode: 403,
  });
  expect((await fetch(`${platform.url}/api/v1/web/${namespace}/apimgmt/getApi.text`)).status).toBe(404);
});

test('wsk api: created with a path parameter, listed, exported, deleted, imported again', async () => {
  const created = await wsk('api', 'create', '/shelf', '/books/{isbn}', 'get', 'books', '--response-type', 'http');
  expect(created).toMatchObject({ code: 0, stderr: '' });
  const url = /^ok: created API \/shelf\/books\/\{isbn\} GET for action \/_\/books\n(\S+)\n$/.exec(created.stdout)?.[1];
  const call = async (): Promise<unknown> => (await fetch((url ?? '').replace('{isbn}', '978-0596517748'))).json();
  const answer = { path: '/shelf/books/978-0596517748', method: 'get' };
  expect(await call()).toEqual(answer);
  expect((await wsk('api', 'list', '/shelf')).stdout).toContain(String(url));
  const exported = await wsk('api', 'get', '/shelf');
  writeFileSync(join(folder, 'shelf.json'), exported.stdout);
  expect(JSON.parse(readFileSync(join(folder, 'shelf.json'), 'utf8'))).toMatchObject({ basePath: '/shelf' });
  expect(await wsk('api', 'delete', '/shelf')).toEqual({ code: 0, stdout: 'ok: deleted API /shelf\n', stderr: '' });
  expect((await fetch(String(url))).status).toBe(404);
  expect(await wsk('api', 'create', '--config-file', 'shelf.json')).toMatchObject({ code: 0, stderr: '' });
  expect(await call()).toEqual(answer);
});

test('routes outlive the platform, and the gateway can be off', async () => {
  const dataDir = newDataDir();
  const flags = ['--stem-cells', 'false'];
  try {
    const first = await startPlatform({ dataDir, flags });
    const made = openwhisk({ apihost: first.url, api_key: first.auth });
    await made.actions.create({
      name: 'a',
      action: 'function main() { return {} }',
      annotations: { 'web-export': true },
    });
    await made.routes.create({ basepath: '/kept', relpath: '/a', operation: 'GET', action: 'a' } as never);
    expect(first.output()).toMatch(/APIs that it serves are at http:\/\/127\.0\.0\.1:\d+\/api\//);
    await first.end('SIGTERM');
    const second = await startPlatform({ dataDir, flags: [...flags, '--gateway-port', 'off'] });
    const listed = await openwhisk({ apihost: second.url, api_key: second.auth }).routes.list();
    expect(JSON.stringify(listed)).toContain('/kept');
    expect(second.output()).not.toContain('APIs that it serves');
    await second.end('SIGTERM');
  } finally {
    removeDataDir(dataDir);
  }
});

test.each(['gateway', 'console'])('a port that is taken is told in a line: %s', async (name) => {
  const dataDir = newDataDir();
  const { port } = new URL(platform.url);
  try {
    expect(await startAndFail({ dataDir, flags: [`--${name}-port`, port] })).toMatchObject({
      code: 1,
      stderr: `Port ${port} of 127.0.0.1 is in use; choose another for the ${name} with --set ${name}Port=PORT.\n`,
    });
  } finally {
    removeDataDir(dataDir);
  }
});
