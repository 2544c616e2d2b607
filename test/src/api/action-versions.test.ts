import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { actionPath, bob, errorOf, hello, startApi } from './harness.js';
import type { Api, Reply } from './harness.js';

interface Version {
  version: string;
  updated: number;
  exec: { kind: string; code?: string; binary: boolean };
  limits: Record<string, number>;
  parameters: unknown[];
  annotations: { key: string; value: unknown }[];
}

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const put = (name: string, body: unknown): Promise<Reply> =>
  api.request('PUT', `/api/v1/namespaces/_/actions/${name}?overwrite=true`, { body });
const path = (name: string, query = ''): string => `/api/v1/namespaces/_/versions/${name}${query}`;
const versionsOf = async (name: string): Promise<Version[]> => (await api.request('GET', path(name))).json as Version[];
const restore = (name: string, query = ''): Promise<Reply> => api.request('POST', path(name, query));
const code = (kind: string, text: string) => ({ exec: { kind, code: text } });
/** Code that the store keeps as an attachment. */
const big = (letter: string): string => `function main() { return { letter: '${letter.repeat(20_000)}' }; }`;

test('an update keeps code and settings of the version before, which can be read and restored', async () => {
  const first = { ...hello, limits: { timeout: 5000 }, annotations: [{ key: 'note', value: 'first' }] };
  const second = { ...code('nodejs:20', big('b')), limits: { timeout: 6000 }, parameters: [{ key: 'x', value: 1 }] };
  for (const body of [first, second, code('python:3.11', 'def main(args): return {}')]) await put('kept', body);
  const listed = await versionsOf('kept');
  expect(listed.map(({ version, exec, limits }) => [version, exec.kind, exec.code, limits.timeout])).toEqual([
    ['0.0.3', 'python:3.11', undefined, 6000],
    ['0.0.2', 'nodejs:20', undefined, 6000],
    ['0.0.1', 'nodejs:20', undefined, 5000],
  ]);
  const [read] = (await api.request('GET', path('kept', '?version=0.0.2'))).json as Version[];
  expect(read?.exec.code).toBe(big('b'));

  const restored = await restore('kept', '?version=0.0.2');
  expect(restored.status).toBe(200);
  expect(restored.json).toMatchObject({ version: '0.0.4', exec: { kind: 'nodejs:20', code: big('b') } });
  const now = (await api.request('GET', actionPath('kept'))).json as Version;
  expect(now).toMatchObject({ version: '0.0.4', exec: { code: big('b') }, parameters: [{ key: 'x', value: 1 }] });
  // Without a version: the one before the present one, which is the one that was replaced last.
  expect((await restore('kept')).json).toMatchObject({ version: '0.0.5', exec: { kind: 'python:3.11' } });
  expect((await restore('kept', '?version=0.0.1')).json).toMatchObject({ version: '0.0.6', limits: { timeout: 5000 } });
  expect((await versionsOf('kept')).map(({ version }) => version)).toEqual(
    ['6', '5', '4', '3', '2', '1'].map((patch) => `0.0.${patch}`),
  );
});

test('of versions with one number the time tells which is meant', async () => {
  for (const letter of ['a', 'b', 'c']) await put('same', { ...code('nodejs:20', big(letter)), version: '1.0.0' });
  const refused = await restore('same', '?version=1.0.0');
  expect([refused.status, errorOf(refused)]).toEqual([400, expect.stringContaining("the number '1.0.0'")]);
  const [, , oldest] = await versionsOf('same');
  const restored = await restore('same', `?version=1.0.0&updated=${oldest?.updated}`);
  expect(restored.json).toMatchObject({ version: '1.0.1', exec: { code: big('a') } });
});

test('ten versions before the present one are kept, those of another action are not touched', async () => {
  await put('ten', hello);
  await put('tenth', hello);
  await put('tenth', hello);
  for (let count = 0; count < 12; count++) await put('ten', code('nodejs:20', big(String(count % 10))));
  const kept = (await versionsOf('ten')).map(({ version }) => version);
  expect(kept).toEqual(Array.from({ length: 11 }, (_, at) => `0.0.${13 - at}`));
  expect(await versionsOf('tenth')).toHaveLength(2);
});

test('versions go with their action, and a package has its own', async () => {
  await put('gone', hello);
  await put('gone', code('nodejs:20', big('z')));
  await api.request('DELETE', actionPath('gone'));
  expect((await api.request('GET', path('gone'))).status).toBe(404);
  await put('gone', hello);
  expect(await versionsOf('gone')).toHaveLength(1);
  const refused = await restore('gone');
  expect([refused.status, errorOf(refused)]).toEqual([
    404,
    'No earlier version of the action is kept. There is none to restore.',
  ]);

  await api.request('PUT', '/api/v1/namespaces/_/packages/versions', { body: {} });
  await put('versions/one', hello);
  await put('versions/one', code('python:3.11', 'def main(args): return {}'));
  expect((await restore('versions/one')).json).toMatchObject({ version: '0.0.3', exec: { kind: 'nodejs:20' } });
  const kept = (await api.store.list('gpu', { limit: 200 })).filter(({ _id }) => _id.includes('/versions/one//'));
  expect(kept).toHaveLength(2);
  await api.request('DELETE', '/api/v1/namespaces/_/packages/versions?force=true');
  const left = (await api.store.list('gpu', { limit: 200 })).filter(({ _id }) => _id.includes('/versions/one//'));
  expect(left).toEqual([]);
});

test('a version that may not be used any more is not restored, and others are refused', async () => {
  await put('part', hello);
  await put('chain', { exec: { kind: 'sequence', components: ['/_/part'] } });
  await put('chain', hello);
  await api.request('DELETE', actionPath('part'));
  expect((await restore('chain')).status).toBe(400);
  expect(await versionsOf('chain')).toHaveLength(2);
  const unknown = await restore('chain', '?version=9.9.9');
  expect([unknown.status, errorOf(unknown)]).toEqual([
    404,
    "Version '9.9.9' of the action is not kept. Kept are: 0.0.1.",
  ]);
  const other = await api.request('GET', '/api/v1/namespaces/alice/versions/chain', { as: bob });
  expect(other.status).toBe(403);
});
