// Packages on the running platform: parameters of a function through a package and a binding, encrypted at rest.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { annotation } from '../support/api-client.js';
import { newDataDir, removeDataDir, startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const keys = {
  'aes-128': ['ra1V6AfOYAv0jCzEdufIFA=='],
  'aes-256': ['j5rLzhtxwzPyUVUy8/p8XJmBoKeDoSzNJP1SITJEY9E='],
};
const dataDir = newDataDir();
const start = (storage: object): Promise<RunningPlatform> =>
  startPlatform({ dataDir, flags: ['--set', `parameterStorage=${JSON.stringify(storage)}`] });
let platform: RunningPlatform;

async function put(path: string, body: JsonObject): Promise<JsonObject> {
  const answer = await platform.api.request('PUT', `_/${path}`, body);
  expect([path, answer.status]).toEqual([path, 200]);
  return answer.body;
}

const mirror = 'const token = process.env.TOKEN; function main(args) { return { token, args }; }';
beforeAll(async () => {
  platform = await start({ current: 'aes-128', keys });
  await put('packages/tools', {
    parameters: [
      { key: 'TOKEN', value: 'of the package', init: true },
      { key: 'size', value: 1 },
      { key: 'colour', value: 'red' },
    ],
  });
  await put('packages/mine', {
    binding: { namespace: '_', name: 'tools' },
    parameters: [
      { key: 'TOKEN', value: 'of the binding', init: true },
      { key: 'size', value: [2] },
    ],
  });
  await platform.api.putAction('tools/mirror', mirror, { parameters: [{ key: 'own', value: { deep: null } }] });
});
afterAll(async () => {
  await platform.end('SIGTERM');
  removeDataDir(dataDir);
});

const own = { deep: null };

test('a function gets the parameters of package, binding, action and caller, decrypted', async () => {
  const stored = (await platform.api.request('GET', '_/packages/mine')).body;
  expect(JSON.stringify(stored)).not.toContain('of the');
  const plain = await platform.api.run('tools/mirror', { colour: 'blue' });
  expect(plain.record.response.result).toEqual({
    token: 'of the package',
    args: { size: 1, colour: 'blue', own },
  });
  expect(annotation(plain.record, 'path')).toBe('guest/tools/mirror');
  expect(annotation(plain.record, 'binding')).toBeUndefined();
  const bound = await platform.api.run('mine/mirror');
  expect(bound.record.response.result).toEqual({
    token: 'of the binding',
    args: { size: [2], colour: 'red', own },
  });
  expect(annotation(bound.record, 'path')).toBe('guest/tools/mirror');
  expect(annotation(bound.record, 'binding')).toBe('guest/mine');
  const listed = await platform.api.request('GET', '_/activations?name=mine/mirror');
  expect(listed.body).toMatchObject([{ activationId: bound.record.activationId }]);
});

test('keys rotate: old values are still read; without their key the record says so', async () => {
  expect(await platform.end('SIGTERM')).toBe(0);
  platform = await start({ current: 'aes-256', keys });
  await put('packages/mine?overwrite=true', { parameters: [{ key: 'size', value: 'new' }] });
  const rotated = await platform.api.run('mine/mirror');
  expect(rotated.record.response.result).toEqual({
    token: 'of the package',
    args: { size: 'new', colour: 'red', own },
  });
  expect(await platform.end('SIGTERM')).toBe(0);
  platform = await start({ current: 'aes-256', keys: { 'aes-256': keys['aes-256'] } });
  const failed = await platform.api.run('mine/mirror', { TOKEN: 'given', colour: 'given' });
  expect([failed.status, failed.record.response]).toMatchObject([
    500,
    {
      status: 'whisk internal error',
      result: { error: "The parameter 'own' is encrypted with 'aes-128', for which there is no key." },
    },
  ]);
  const given = await platform.api.run('mine/mirror', { TOKEN: 'given', colour: 'given', own: 'given' });
  expect(given.record.response.result).toMatchObject({ token: 'given', args: { size: 'new', own: 'given' } });
});
