import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { alice, bob, errorOf } from './harness.js';
import type { Account, Reply } from './harness.js';
import { startWebApi, webMethods } from './web-harness.js';
import type { WebApi } from './web-harness.js';

let web: WebApi;

const pairs = (object: JsonObject): JsonValue => Object.entries(object).map(([key, value]) => ({ key, value }));

async function put(as: Account, path: string, body: JsonObject): Promise<void> {
  const reply = await web.api.request('PUT', `/api/v1/namespaces/_/${path}?overwrite=true`, { as, body });
  if (reply.status !== 200) throw new Error(`PUT of ${path} was answered ${reply.status}: ${reply.text}`);
}

const putAction = (as: Account, path: string, annotations: JsonObject, parameters: JsonObject = {}): Promise<void> =>
  put(as, `actions/${path}`, {
    exec: { kind: 'nodejs:20', code: 'function main(args) { return args; }' },
    annotations: pairs(annotations),
    parameters: pairs(parameters),
  });

/** Parameters that were merged into the action of the last invocation. */
const merged = (): JsonObject =>
  Object.fromEntries(web.api.invocations.at(-1)?.action.parameters.map(({ key, value }) => [key, value]) ?? []);

const exported = { 'web-export': true };
const final = { 'web-export': true, final: true };

beforeAll(async () => {
  web = await startWebApi();
  await put(alice, 'packages/proxy', { parameters: pairs({ x: 'X', z: 'z' }) });
  await putAction(alice, 'proxy/exported', final, { y: 'Y', z: 'Z', empty: null });
  await putAction(alice, 'proxy/hidden', {});
  await put(alice, 'packages/bound', { binding: { namespace: 'alice', name: 'proxy' } });

  await put(bob, 'packages/shared', { publish: true, parameters: pairs({ a: 'A', b: 'b', d: 'package' }) });
  await putAction(bob, 'shared/exported', exported, { d: 'action' });
  await putAction(bob, 'shared/final', final);
  await put(alice, 'packages/reference', {
    binding: { namespace: 'bob', name: 'shared' },
    parameters: pairs({ a: 'a', c: 'c' }),
    annotations: pairs({ 'web-export': false }),
  });
});
afterAll(() => web.api.close());

describe('an action of a package', () => {
  test.each(webMethods)('%s', async (method) => {
    expect((await web.call(method, 'proxy/exported.json')).status).toBe(200);
  });

  test('has its parameters over those of the package', async () => {
    await web.call('GET', 'proxy/exported.json');
    expect(merged()).toEqual({ x: 'X', y: 'Y', z: 'Z', empty: null });
    expect(web.api.invocations.at(-1)).toMatchObject({ action: { namespace: 'alice/proxy', name: 'exported' } });
    expect(web.api.invocations.at(-1)).not.toHaveProperty('binding');
  });

  test.each(['x', 'y', 'z'])('%s of package and action is final', async (key) => {
    for (const options of [{}, { body: { [key]: 'overridden' } }]) {
      const query = 'body' in options ? '' : `?${key}=overridden`;
      const reply = await web.call('POST', `proxy/exported.json${query}`, options);
      expect([reply.status, errorOf(reply)]).toEqual([400, expect.stringContaining('parameters that are not allowed')]);
    }
  });

  test('what has no value is not final', async () => {
    expect((await web.call('GET', 'proxy/exported.json?empty=overridden')).json).toMatchObject({ empty: 'overridden' });
  });
});

describe('an action through a binding', () => {
  test.each(webMethods)('%s', async (method) => {
    expect((await web.call(method, 'bound/exported.json')).status).toBe(200);
    expect((await web.call(method, 'reference/exported.json')).status).toBe(200);
  });

  test('package, binding and action are merged in that order', async () => {
    await web.call('GET', 'reference/exported.json');
    expect(merged()).toEqual({ a: 'a', b: 'b', c: 'c', d: 'action' });
    expect(web.api.invocations.at(-1)).toMatchObject({
      identity: { namespace: { name: 'alice' } },
      action: { namespace: 'bob/shared', name: 'exported' },
      binding: 'alice/reference',
    });
  });

  test('final parameters of the binding are final', async () => {
    const reply = await web.call('GET', 'reference/final.json?c=overridden');
    expect(reply.status).toBe(400);
  });
});

describe('what strangers are told', () => {
  const outcome = (reply: Reply): [number, string] => [reply.status, errorOf(reply)];
  const missing = [404, 'The requested resource does not exist.'];

  test.each(['nowhere/exported', 'proxy/nothing', 'proxy/hidden', 'reference/nothing', 'shared/exported'])(
    '%s is not there',
    async (path) => {
      expect(outcome(await web.call('GET', `${path}.json`))).toEqual(missing);
    },
  );

  test('broken names are not there either', async () => {
    await web.api.store.put('whisks', { _id: 'alice/broken', name: 'broken' });
    expect(outcome(await web.call('GET', 'default/broken.json'))).toEqual(missing);
    expect(outcome(await web.call('GET', 'broken/exported.json'))).toEqual(missing);
    expect(outcome(await web.call('GET', 'default/proxy.json'))).toEqual(missing);
    const { _rev, ...proxy } = await web.api.store.get('whisks', 'alice/proxy');
    expect(_rev).toBeDefined();
    const circular = { ...proxy, _id: 'alice/circular', name: 'circular' };
    await web.api.store.put('whisks', { ...circular, binding: { namespace: 'alice', name: 'circular' } });
    expect(outcome(await web.call('GET', 'circular/exported.json'))).toEqual(missing);
  });

  test('a package that is shared no more', async () => {
    await put(bob, 'packages/private', { publish: true });
    await putAction(bob, 'private/exported', exported);
    await put(alice, 'packages/late', { binding: { namespace: 'bob', name: 'private' } });
    expect((await web.call('GET', 'late/exported.json')).status).toBe(200);
    await put(bob, 'packages/private', { publish: false });
    expect((await web.call('GET', 'late/exported.json')).status).toBe(403);
    expect((await web.call('GET', 'late/exported.json', { as: bob })).status).toBe(403);
  });
});
