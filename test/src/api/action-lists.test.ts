import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { actionPath, bob, errorOf, hello, startApi } from './harness.js';
import type { Api } from './harness.js';

const list = '/api/v1/namespaces/_/actions';
let api: Api;
let nowMs = 1_000_000;
beforeAll(async () => {
  api = await startApi({ clock: { ...systemClock, now: () => nowMs++ } });
  for (let number = 0; number < 35; number++) {
    await api.request('PUT', actionPath(`a${number}`), { body: hello });
  }
  await api.request('PUT', actionPath('other'), { as: bob, body: hello });
});
afterAll(() => api.close());

const names = (json: unknown): string[] => (json as { name: string }[]).map((row) => row.name);
const numbered = (from: number, to: number): string[] =>
  Array.from({ length: from - to + 1 }, (_, index) => `a${from - index}`);

test('rows are the newest first, 30 of them', async () => {
  const reply = await api.request('GET', list);
  expect(names(reply.json)).toEqual(numbered(34, 5));
  expect((reply.json as unknown[])[0]).toEqual({
    namespace: 'alice',
    name: 'a34',
    version: '0.0.1',
    publish: false,
    annotations: [
      { key: 'provide-api-key', value: false },
      { key: 'exec', value: 'nodejs:20' },
    ],
    limits: { timeout: 60000, memory: 256, logs: 10, concurrency: 1 },
    exec: { binary: false },
    updated: 1_000_035,
  });
});

test.each([
  ['?limit=2', numbered(34, 33)],
  ['?limit=2&skip=3', numbered(31, 30)],
  ['?limit=0', numbered(34, 0)],
  ['?limit=200', numbered(34, 0)],
  ['?skip=100', []],
  ['?limit=1&docs=true', ['a34']],
])('%s', async (query, expected) => {
  expect(names((await api.request('GET', list + query)).json)).toEqual(expected);
});

test('an update comes to the front', async () => {
  await api.request('PUT', `${actionPath('a0')}?overwrite=true`, { body: {} });
  expect(names((await api.request('GET', `${list}/?limit=2`)).json)).toEqual(['a0', 'a34']);
});

test.each([
  ['?count=true', 35],
  ['?count=true&skip=5', 30],
  ['?count=true&skip=50', 0],
  ['?count=true&limit=1', 35],
])('%s counts', async (query, count) => {
  expect((await api.request('GET', list + query)).json).toEqual({ actions: count });
});

test.each([
  ['skip=-1', 'skip', "The value '-1' is not greater than or equal to 0 for actions."],
  ['skip=x', 'skip', "The value 'x' is not an integer for actions."],
  ['limit=201', 'limit', "The value '201' is not in the range of 0 to 200 for actions."],
  ['limit=-1', 'limit', "The value '-1' is not in the range of 0 to 200 for actions."],
  ['limit=1.5', 'limit', "The value '1.5' is not an integer for actions."],
  ['limit=99999999999', 'limit', "The value '99999999999' is not an integer for actions."],
  ['count=maybe', 'count', "'maybe' is not a valid Boolean value"],
])('?%s is refused', async (query, parameter, detail) => {
  const reply = await api.request('GET', `${list}?${query}`);
  expect([reply.status, errorOf(reply)]).toEqual([400, `The query parameter '${parameter}' was malformed:\n${detail}`]);
  expect(reply.headers['access-control-allow-origin']).toBeUndefined();
});
