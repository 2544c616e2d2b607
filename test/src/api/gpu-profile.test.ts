// The profile of a function on GPUs: when its trials are wanted, cancelled and dropped.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { FunctionTrials } from '@gpuwhisk/controller/gpu/learning/function-trials';
import { trialsView } from '@gpuwhisk/controller/api/gpu-performance-views';
import { actionPath, alice, bob, errorOf, hello, startApi } from './harness.js';
import type { Account, Api, Reply } from './harness.js';

const gpuType = 'a100-40';
let api: Api;
let trials: FunctionTrials;
let found: unknown[];

beforeEach(async () => {
  found = [];
  trials = new FunctionTrials({
    keep: () => undefined,
    tell: () => undefined,
    deployed: () => undefined,
    found: (wanted, _, shares) => found.push([wanted.version, shares?.request]),
  });
  const jobs = { isPossible: () => true, isRunning: () => false, stateOf: () => undefined };
  const performanceViews = { trialsOf: (name: string) => trialsView(trials.of(name), jobs) };
  api = await startApi({ performanceData: { trials }, performanceViews });
});
afterEach(() => api.close());

const put = (gpu: object, idempotent = true): Promise<Reply> => {
  const annotations = [
    { key: 'gpu', value: { memoryMiB: 500, ...gpu } },
    { key: 'idempotent', value: idempotent },
  ];
  return api.request('PUT', `${actionPath('f')}?overwrite=true`, { body: { ...hello, annotations } });
};
const profile = (method = 'GET', as: Account = alice, name = '/alice/f'): Promise<Reply> =>
  api.request(method, `/api/v1/gpu/functions/${encodeURIComponent(name)}/profile`, { as });
const add = (share: number, ms: number): void => {
  const { version } = trials.of('/alice/f')!;
  trials.add({ function: '/alice/f', version, goal: {} }, { gpuType, mode: 'mps' }, 550, {
    batch: 1,
    share,
    ms,
  });
};

test('an action with a sample and an SLO is profiled from its creation on, each version from the start', async () => {
  await put({ sample: {}, sloMs: 100 });
  expect((await profile()).json).toEqual({
    ...{ action: '/alice/f', version: '0.0.1', state: 'waiting', goal: { sloMs: 100 }, kinds: [] },
  });
  add(10, 90);
  add(20, 45);
  expect((await profile()).json).toMatchObject({ state: 'waiting' });
  // The limit is measured at the greatest class up to it.
  add(30, 31);
  const kind = {
    gpuType,
    mode: 'mps',
    mostTrials: 7,
    profile: { request: 200, limit: 400, batch: 1, ms: 45, limitMs: 31, keepsGoal: true },
  };
  expect((await profile()).json).toMatchObject({
    state: 'done',
    kinds: [{ ...kind, trials: [{ ms: 90 }, { ms: 45 }, { ms: 31 }] }],
  });
  await put({ sample: {}, class: 'training' });
  expect((await profile()).json).toMatchObject({ version: '0.0.2', state: 'waiting', goal: {}, kinds: [] });
  expect(found).toEqual([
    ['0.0.1', undefined],
    ['0.0.1', undefined],
    ['0.0.1', 200],
    ['0.0.1', undefined],
  ]);
  await put({ sample: {} });
  expect((await profile()).json).toMatchObject({ state: 'none' });
});

test('trials are cancelled, and go on when they are wanted again', async () => {
  await put({ sample: {}, sloMs: 100 });
  add(10, 90);
  expect((await profile('DELETE')).json).toMatchObject({ state: 'cancelled', kinds: [{ trials: [{ share: 10 }] }] });
  const { status, json } = await profile('POST');
  expect([status, json]).toMatchObject([202, { state: 'waiting', kinds: [{ trials: [{ share: 10 }] }] }]);
  await api.request('DELETE', actionPath('f'));
  expect(trials.of('/alice/f')).toBeUndefined();
});

test('trials without a result are repeated', async () => {
  await put({ sample: {}, sloMs: 100 });
  add(10, NaN);
  expect((await profile()).json).toMatchObject({ state: 'done', kinds: [{ failed: expect.any(String) }] });
  expect((await profile('POST')).json).toMatchObject({ state: 'waiting', kinds: [] });
});

test.each([
  [{ sloMs: 100 }, true, "annotation 'gpu' has no sample"],
  [{ sample: {} }, true, "annotation 'gpu' has neither sloMs nor class training"],
  [{ sample: {}, sloMs: 100 }, false, "annotation 'idempotent' is not true"],
])('%j is not profiled: idempotent %s', async (gpu, idempotent, reason) => {
  await put(gpu, idempotent);
  const reply = await profile('POST');
  expect([reply.status, errorOf(reply)]).toEqual([400, expect.stringContaining(reason)]);
  expect((await profile()).json).toMatchObject({ state: 'none' });
});

test('profiles are for the owner of the action', async () => {
  await put({ sample: {}, sloMs: 100 });
  for (const method of ['GET', 'POST', 'DELETE']) expect((await profile(method, bob)).status).toBe(403);
  expect((await profile('GET', alice, '/alice/none')).status).toBe(404);
});
