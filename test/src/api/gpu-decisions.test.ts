import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { DecisionRecord, GpuQueued } from '@gpuwhisk/common/gpu';
import { alice, bob, idleGpuScheduler, operator, startApi } from './harness.js';
import type { Account, Api } from './harness.js';

const draining = { what: 'GPU-0', reason: 'draining: /bob/f overran its memory', numbers: {} };
const decision = (activationId: string, namespace: string): DecisionRecord => ({
  ...{ at: 1, activationId, action: `/${namespace}/f`, namespace, policy: 'faashare', reason: 'it waits' },
  rejected: [draining],
});
const queued = (activationId: string, namespace: string, position: number): GpuQueued => ({
  ...{ activationId, action: `/${namespace}/f`, namespace, position, waitedMs: 5, memoryMiB: 512, gpus: 1 },
  ...{ refusals: [], rejected: [draining] },
});
const ofAlice = [decision('a1', 'alice'), decision('a2', 'alice')];
const ofBob = [decision('b1', 'bob')];
const waiting = [queued('a1', 'alice', 1), queued('b1', 'bob', 2)];

let api: Api;
beforeAll(async () => {
  const gpuScheduler = { ...idleGpuScheduler, decisions: () => [...ofAlice, ...ofBob], queued: () => waiting };
  api = await startApi({ gpuScheduler });
});
afterAll(() => api.close());

const read = async (path: string, as: Account): Promise<unknown> =>
  (await api.request('GET', `/api/v1/gpu/${path}`, { as })).json;
/** Removes reasons of states, which may name functions of other namespaces. */
const withoutReasons = <One extends object>(one: One): One => ({
  ...one,
  rejected: [{ ...draining, reason: 'draining' }],
});

test("an operator reads all decisions and all that waits, anybody else what is their namespace's", async () => {
  expect(await read('decisions', operator)).toEqual([...ofAlice, ...ofBob]);
  expect(await read('decisions', alice)).toEqual(ofAlice.map(withoutReasons));
  expect(await read('queue', operator)).toEqual(waiting);
  expect(await read('queue', bob)).toEqual([withoutReasons(waiting[1]!)]);
});

test('those of one activation are read by its id, by whom they concern', async () => {
  expect(await read('decisions?activation=a2', alice)).toEqual([withoutReasons(ofAlice[1]!)]);
  expect(await read('decisions?activation=a2', bob)).toEqual([]);
  expect(await read('queue?activation=b1', operator)).toEqual([waiting[1]]);
});

test('operators read the view, and are told where another controller decides', async () => {
  const { status, json } = await api.request('GET', '/api/v1/gpu/view', { as: operator });
  expect([status, json]).toEqual([200, { format: 'gpuwhisk view', version: 1 }]);
  expect((await api.request('GET', '/api/v1/gpu/view', { as: alice })).status).toBe(403);
  const other = await startApi({ gpuScheduler: { ...idleGpuScheduler, epoch: undefined } });
  try {
    const refused = await other.request('GET', '/api/v1/gpu/view', { as: operator });
    expect([refused.status, refused.json]).toMatchObject([
      503,
      { error: 'There is no view of the GPUs here: another controller decides about GPUs, ask that one.' },
    ]);
  } finally {
    await other.close();
  }
});
