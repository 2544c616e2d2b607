import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type {
  DegradationsView,
  FunctionPerformance,
  SetPerformance,
} from '@gpuwhisk/controller/api/gpu-performance-views';
import { newShareCounts } from '@gpuwhisk/gpu/share/share-counts';
import { a100, nodeRow, setNode } from './gpu-nodes.js';
import { alice, bob, operator, startApi } from './harness.js';
import type { Account, Api } from './harness.js';

const learnedOf = (name: string): FunctionPerformance => ({
  ...{ function: name, version: '0.0.1', gpuType: 'a100-40', mode: 'mps' },
  batches: [{ batch: 1, soloMs: 10, measured: true, runs: 3 }],
});
const beside = (predicted: number): FunctionPerformance['batches'] => [
  { batch: 1, soloMs: 10, measured: true, runs: 3, slowdown: { predicted, measured: 1, runs: 3 } },
];
const functions = [
  learnedOf('/alice/f'),
  { ...learnedOf('/bob/g'), batches: beside(1.1) },
  { ...learnedOf('/alicef/h'), batches: beside(0.9) },
];
const setOf = (...names: string[]): SetPerformance => ({
  ...{
    id: `a100-40/mps ${names.join(' ')}`,
    gpuType: 'a100-40',
    mode: 'mps',
    driverMajor: 550,
    search: { stage: 'none' },
  },
  jobs: names.map((name) => ({ function: name, version: '0.0.1' })),
  points: [{ shares: [50, 50], slowdowns: [1.2, 1.1], measurements: 2 }],
});
const quotas = [setOf('/alice/f', '/bob/g'), setOf('/bob/g', '/bob/g')];
const forecasts = ['alice', 'bob'].map((namespace) => {
  return {
    function: '/bob/g',
    namespace,
    requests: [1, 0],
    expected: [null, 1.5],
    now: { requests: 1.5, active: 0.8 },
  };
});
const degradations: DegradationsView = {
  models: [
    {
      ...{ gpuType: 'a100-40', mode: 'mps', victim: 'function', neighbour: 'workload' },
      ...{ pairs: 3, measurements: 4, predictedBy: 'measuring' },
    },
  ],
  drifts: [
    {
      ...{
        gpuType: 'a100-40',
        mode: 'mps',
        direction: 'worse',
        departed: 11,
        observed: 20,
        predicted: 0.1,
        measured: 0.4,
      },
      victim: { kind: 'function', name: '/alice/f', namespace: 'alice' },
      neighbour: { kind: 'workload', name: 'train' },
    },
  ],
};
const models = [{ gpuType: 'a100-40', mode: 'mps' as const, version: 2, sampleCount: 40 }];

let api: Api;
let forgotten: unknown[];
const forget = (isKnown: boolean, what: unknown): boolean => {
  if (isKnown) forgotten.push(what);
  return isKnown;
};
beforeAll(async () => {
  api = await startApi({
    performanceViews: {
      functions: (wants = () => true) => functions.filter((one) => wants(one.function)),
      quotas: (wants = () => true) => quotas.filter(({ jobs }) => jobs.some((job) => wants(job.function))),
      models: () => models,
      degradations: () => degradations,
    },
    performanceData: {
      forecasts: { views: () => forecasts },
      shareCounts: { ...newShareCounts(), hit: { choices: 2, taken: 1, chosenMs: 1500, fillingMs: 2000 } },
      forgetFunction: (name) => forget(name === '/alice/f', name),
      forgetQuota: (id) => forget(id === quotas[0]?.id, id),
      forgetModel: ({ gpuType, mode }) => forget(`${gpuType}/${mode}` === 'a100-40/mps', gpuType),
    },
  });
});
afterAll(() => api.close());
beforeEach(() => {
  forgotten = [];
});

const read = async (path: string, as: Account): Promise<unknown> =>
  (await api.request('GET', `/api/v1/gpu/${path}`, { as })).json;
const remove = async (path: string, as: Account): Promise<number> =>
  (await api.request('DELETE', `/api/v1/gpu/${path}`, { as })).status;

test('an operator reads all that was learned, anybody else what is of their namespace, without names of others', async () => {
  expect(await read('functions', operator)).toEqual(functions);
  expect(await read('functions', alice)).toEqual([functions[0]]);
  expect(await read('quotas', operator)).toEqual(quotas);
  const { id, ...shared } = quotas[0]!;
  expect(id).toContain('/bob/g');
  const others = { function: '(of others)', version: '' };
  expect(await read('quotas', alice)).toEqual([{ ...shared, jobs: [shared.jobs[0], others] }]);
  expect(await read('quotas', bob)).toHaveLength(2);
  expect(await read('forecasts', operator)).toEqual(forecasts);
  expect(await read('forecasts', alice)).toEqual([forecasts[0]]);
  expect(await read('models', operator)).toEqual(models);
  expect((await api.request('GET', '/api/v1/gpu/models', { as: alice })).status).toBe(403);
  expect(await read('degradations', operator)).toEqual(degradations);
  expect((await api.request('GET', '/api/v1/gpu/degradations', { as: alice })).status).toBe(403);
});

test('memory that its instances hold is told with a function', async () => {
  const device = a100('GPU-0');
  const resident = {
    ...{ container: 'c', action: '/alice/f', namespace: 'alice', device: device.uuid, memoryMiB: 2000, heldMiB: 700 },
    share: { shareClass: 50 as const, smRequest: 0.5, smLimit: 0.5, memoryMiB: 2000 },
    activations: [],
  };
  await setNode(api.state, { ...nodeRow([device]), residents: [resident] });
  const [first, second] = (await read('functions', operator)) as FunctionPerformance[];
  expect([first, second]).toEqual([{ ...functions[0], heldMiB: 700 }, functions[1]]);
});

test('operators have single ones forgotten, others may not', async () => {
  const set = encodeURIComponent(quotas[0]?.id ?? '');
  for (const path of ['functions/%2Falice%2Ff', `quotas/${set}`, 'models/a100-40/mps']) {
    expect([path, await remove(path, alice)]).toEqual([path, 403]);
    expect([path, await remove(path, operator)]).toEqual([path, 200]);
  }
  expect(forgotten).toEqual(['/alice/f', quotas[0]?.id, 'a100-40']);
  for (const path of ['functions/%2Falice%2Fnothing', 'quotas/nothing', 'models/h100/mps']) {
    expect([path, await remove(path, operator)]).toEqual([path, 404]);
  }
});

test('the policy is told with its stages, its settings and the error of what it has learned', async () => {
  const policy = (await read('policy', alice)) as Record<string, unknown>;
  expect(policy).toMatchObject({
    ...{ policy: 'auto', admission: 'best-effort', decides: true, functions: 1, sharedSets: 1 },
    stages: { admit: 'by-prediction', plan: 'sub-queues' },
    settings: { admit: {}, plan: { bestEffortMs: 30_000 } },
    models: [{ gpuType: 'a100-40', mode: 'mps', version: 2, sampleCount: 40 }],
    shareChoices: { hit: { choices: 2, taken: 1, savedMs: 500 }, near: { choices: 0 }, miss: { choices: 0 } },
  });
  expect(await read('policy', operator)).toMatchObject({
    ...{ functions: 3, sharedSets: 2 },
    models: [{ gpuType: 'a100-40', mode: 'mps', version: 2, error: expect.closeTo(0.1), runs: 6 }],
  });
});
