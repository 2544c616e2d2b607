// Which accounts are operators, and which routes are closed to functions in sandboxes.
import { afterEach, describe, expect, test } from '@jest/globals';
import { whiskSystem } from '@gpuwhisk/common/entities/identity';
import { systemNetwork } from '@gpuwhisk/common/system/network';
import type { HttpServer } from '@gpuwhisk/common/system/network';
import { putIdentity } from '@gpuwhisk/controller/authentication/authentication';
import { alice, errorOf, operator, send, startApi } from './harness.js';
import type { Account, Api, ApiSettings, RequestOptions } from './harness.js';

/** The identity that `operatorKey` belongs to; no database has it. */
const holder = { subject: '', namespace: '', uuid: 'operator-uuid', key: 'K'.repeat(64) };
const withKey = { config: { operatorKey: `${holder.uuid}:${holder.key}`, operators: [operator.subject] } };
const documents = '/api/v1/admin/databases/subjects/documents?docs=true';
const waiting = { activationId: 'a1', namespace: 'alice', rejected: [] };
const onlyOperators =
  "The supplied authentication is not authorized to access this resource, which is for operators. On the machine of a standalone server, gpuwhisk operator-key shows an operator's key.";

let api: Api | undefined;
let sandboxes: HttpServer | undefined;
afterEach(async () => {
  await sandboxes?.close(0);
  await api?.close();
  api = sandboxes = undefined;
});

const statusOf = async (path: string, as: Account | null, options: RequestOptions = {}): Promise<number> =>
  (await api!.request('GET', path, { as, ...options })).status;

describe('the key of the configuration', () => {
  test('administers, sees all GPUs, and is of no namespace', async () => {
    api = await startApi(withKey);
    expect(await statusOf(documents, holder)).toBe(200);
    expect(await statusOf('/api/v1/gpu/models', holder)).toBe(200);
    for (const path of ['/api/v1/namespaces', '/api/v1/namespaces/_/actions']) {
      const refused = await api.request('GET', path, { as: holder });
      expect([refused.status, errorOf(refused)]).toEqual([403, expect.stringContaining('has no namespace')]);
    }
    expect(await statusOf('/api/v1/nowhere', holder)).toBe(404);
    expect(await statusOf(documents, { ...holder, key: 'L'.repeat(64) })).toBe(401);
    expect(await statusOf(documents, { ...holder, uuid: 'other-uuid' })).toBe(401);
  });

  test('is not in the databases, which an operator reads', async () => {
    api = await startApi(withKey);
    const { text } = await api.request('GET', documents, { as: holder });
    expect(text).toContain(alice.key);
    expect(text).not.toContain(holder.key);
  });

  test('makes no account an operator where it is not set', async () => {
    api = await startApi({ config: { operators: [] } });
    expect(await statusOf(documents, holder)).toBe(401);
    expect(await statusOf(documents, operator)).toBe(403);
  });
});

test("whisk.system's published key makes no operator, even where the configuration names the subject", async () => {
  api = await startApi({ config: { operators: [whiskSystem.subject] } });
  await putIdentity(api.store, whiskSystem);
  const refused = await api.request('GET', documents, { as: whiskSystem });
  expect([refused.status, errorOf(refused)]).toEqual([403, onlyOperators]);
  expect(await statusOf('/api/v1/namespaces', whiskSystem)).toBe(200);
});

describe.each([
  ['the listener that sandboxes reach', {}],
  ['what an invoker passes on for a function', { 'x-gpuwhisk-sandbox': 'true' }],
])('%s', (_, headers) => {
  const ask = (method: string, path: string, as: Account | null) =>
    send(sandboxes!.port, method, path, { as, headers, ...(method === 'POST' && { body: {} }) });

  async function start(): Promise<Api> {
    const gpuScheduler = { queued: () => [waiting], decisions: () => [] } as unknown as ApiSettings['gpuScheduler'];
    api = await startApi({ ...withKey, ...(gpuScheduler && { gpuScheduler }) });
    const { handle, handleSandboxes } = api.controller;
    const handler = 'x-gpuwhisk-sandbox' in headers ? handle : handleSandboxes;
    sandboxes = await systemNetwork.listen(handler, { host: '127.0.0.1', port: 0 });
    return api;
  }

  test('has no route of operators, no metrics and no description of the API', async () => {
    const { controller } = await start();
    const closed = controller.routes.filter(({ access }) => access === 'operator' || access === 'outside');
    expect(closed.map(({ operationId }) => operationId)).toEqual(
      expect.arrayContaining(['getDocuments', 'setGpuWish', 'getGpuModels', 'getMetrics', 'getSwagger', 'getOpenApi']),
    );
    for (const { method, path } of closed) {
      const place = path.replaceAll(/\{\w+\}/g, 'subjects');
      // An operators' GPU route may share its path with a namespaces' route: then the answer is 405 instead of 404.
      const { status } = await ask(method, place, operator);
      expect([method, place, [404, 405].includes(status)]).toEqual([method, place, true]);
      if (place.startsWith('/api/v1')) expect([place, (await ask(method, place, holder)).status]).toEqual([place, 401]);
    }
    for (const path of [
      '/api/v1/admin/',
      '/api/v1//admin/prewarmers',
      '/api/v1/%61dmin/prewarmers',
      '/api/v1/./admin',
    ]) {
      expect([path, (await ask('GET', path, operator)).status]).toEqual([path, 404]);
    }
  });

  test('takes operators for namespaces like others', async () => {
    const { request } = await start();
    const queue = '/api/v1/gpu/queue';
    expect((await request('GET', queue, { as: operator })).json).toEqual([waiting]);
    expect((await ask('GET', queue, alice)).json).toEqual([waiting]);
    expect((await ask('GET', queue, operator)).json).toEqual([]);
    expect((await ask('GET', queue, holder)).status).toBe(401);
  });

  test('serves functions what they need', async () => {
    await start();
    expect((await ask('GET', '/ping', null)).text).toBe('pong');
    expect((await ask('GET', '/', null)).status).toBe(200);
    expect((await ask('GET', '/api/v1/namespaces', alice)).json).toEqual(['alice']);
  });
});
