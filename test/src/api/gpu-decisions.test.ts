import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { activationDocument } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { GpuQueued } from '@gpuwhisk/common/gpu';
import type { DecisionRecord } from '@gpuwhisk/common/gpu-decisions';
import { alice, bob, idleGpuScheduler, operator, startApi } from './harness.js';
import type { Account, Api, Reply } from './harness.js';

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

describe('an explanation', () => {
  const id = 'e'.repeat(32);
  const beside = [
    { action: '/alice/b', namespace: 'alice', part: 1 },
    { action: '/bob/secret', namespace: 'bob', part: 1 },
  ];
  const waits: DecisionRecord = { ...decision(id, 'alice'), ahead: 2, sloMs: 200, rejected: [] };
  const placed: DecisionRecord = {
    ...waits,
    placement: {
      ...{ invoker: 'invoker0', devices: ['GPU-0'], at: 1, epoch: 1, version: 1 },
      share: { shareClass: 100, smRequest: 1, smLimit: 1, memoryMiB: 512 },
    },
    run: { aloneMs: 50, slowdown: 1.5, beside },
  };
  const explain = (as: Account, of = id): Promise<Reply> =>
    own.request('GET', `/api/v1/gpu/explanations/${of}`, { as });
  let own: Api;
  beforeAll(async () => {
    own = await startApi({ gpuScheduler: { ...idleGpuScheduler, decisions: () => [placed, waits, ...ofBob] } });
    const gpu = { device: 'GPU-0', share: 1, queueMs: 300, actualMs: 75, start: 'warm' };
    const record: WhiskActivation = {
      ...{ namespace: 'alice', name: 'f', version: '0.0.1', subject: 's', activationId: id, start: 0, end: 75 },
      ...{ duration: 75, response: { statusCode: 0 }, logs: [], publish: false },
      annotations: [
        { key: 'waitTime', value: 300 },
        { key: 'gpu', value: gpu },
      ],
    };
    await own.store.put('activations', activationDocument(record, 75));
  });
  afterAll(() => own.close());

  test('has a sentence of decisions and record, without names of functions of other namespaces', async () => {
    const { sentence, decisions } = (await explain(alice)).json as { sentence: string; decisions: DecisionRecord[] };
    expect(sentence).toBe(
      'Queued 300 ms (2 ahead, GPU shared 3 ways), ran 75 ms (50 % slower than alone beside `/alice/b` and a function of another namespace), ' +
        'SLO 200 ms: missed by 175 ms because it waited 300 ms for a GPU. What would have helped: another GPU, or a smaller share of one (`mpsPercent` in annotation gpu).',
    );
    expect(decisions.map(({ run }) => run?.beside.map(({ action }) => action))).toEqual([
      ['/alice/b', 'a function of another namespace'],
      undefined,
    ]);
    expect(JSON.stringify((await own.request('GET', '/api/v1/gpu/decisions', { as: alice })).json)).not.toContain(
      'secret',
    );
    expect(((await explain(operator)).json as { sentence: string }).sentence).toContain('`/bob/secret`');
  });

  test('of another namespace, or of no activation, has no sentence', async () => {
    expect((await explain(bob)).json).toEqual({ decisions: [] });
    expect((await explain(alice, 'f'.repeat(32))).json).toEqual({ decisions: [] });
    expect((await explain(alice, 'short')).status).toBe(400);
  });
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
