import { beforeEach, expect, test } from '@jest/globals';
import type { JobAttempt } from '@gpuwhisk/common/jobs/jobs';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { vaguePrior } from './priors.js';
import {
  classSpace,
  defaultHyper,
  maxEvaluations,
  quotaSearchBody,
  quotaSearchJob,
  quotaSearchKind,
} from './quota-search.js';
import { QuotaTable } from './quota-table.js';
import type { QuotaJob } from './quotas.js';
import type { QuotaSearchNeeds } from './quota-search.js';

const set: QuotaJob[] = ['a', 'b', 'c'].map((name) => ({ function: name, version: '1', batch: 2, soloMs: 10 }));
const request = { gpuType: 'v100', mode: 'mps' as const, set, maxSlowdowns: [Infinity, Infinity, 2], gpu: 'GPU-1' };
/** The first can use all of the GPU, the others hardly any. */
const truth = ([first, , last]: readonly number[]): number[] => [100 / first!, 1, last! < 20 ? 1.3 : 1];

let table: QuotaTable;
let measured: (readonly number[])[];
let storedPoints: number;
const never: JobAttempt = { attempt: 1, isLast: false, signal: new AbortController().signal };
const bodyWith = (measure: QuotaSearchNeeds['measure']) =>
  quotaSearchBody({
    table,
    priorOf: () => vaguePrior,
    hyperOf: () => defaultHyper,
    driverMajorOf: () => 550,
    measure,
    saved: () => Promise.resolve(void (storedPoints = table.pointsOf(set, { gpuType: 'v100', mode: 'mps' }).length)),
    random: seededRandom(1),
    space: { ...classSpace, maxTotal: 100 },
  });
const measure: QuotaSearchNeeds['measure'] = (_, shares) => {
  measured.push(shares);
  return Promise.resolve(truth(shares));
};
beforeEach(() => {
  table = new QuotaTable({ predictorOf: () => ({ slowdown: () => 1 }) });
  measured = [];
  storedPoints = 0;
});

test('a search fills the table, so that the set is hit with the best shares', async () => {
  const job = quotaSearchJob(request);
  expect(job).toMatchObject({ kind: quotaSearchKind, resource: 'gpu/GPU-1' });
  await bodyWith(measure)(JSON.parse(JSON.stringify(job.payload)), never);
  expect(measured.length).toBeLessThanOrEqual(maxEvaluations);
  expect(table.pointsOf(set, { gpuType: 'v100', mode: 'mps' })).toHaveLength(measured.length);
  expect(table.wantsSearch(set, { gpuType: 'v100', mode: 'mps' })).toBe(false);
  expect(table.shareFor(set, { gpuType: 'v100', mode: 'mps' }, [Infinity, Infinity, 20])).toMatchObject({
    source: 'hit',
    shares: [0.7, 0.1, 0.2],
  });
});

test('one set has one job, in whatever order it is named', () => {
  const turned = { ...request, set: [...set].reverse(), maxSlowdowns: [2, Infinity, Infinity] };
  expect(quotaSearchJob(turned).key).toBe(quotaSearchJob(request).key);
  expect(quotaSearchJob({ ...request, gpuType: 'h100' }).key).not.toBe(quotaSearchJob(request).key);
});

test('a search that was cut short goes on from what it measured', async () => {
  const { payload } = quotaSearchJob(request);
  const interrupted = bodyWith((jobs, shares, gpu, signal) =>
    measured.length === 2 ? Promise.reject(new Error('the GPU is wanted')) : measure(jobs, shares, gpu, signal),
  );
  await expect(interrupted(payload, never)).rejects.toThrow('the GPU is wanted');
  expect(table.pointsOf(set, { gpuType: 'v100', mode: 'mps' })).toHaveLength(2);
  expect(table.wantsSearch(set, { gpuType: 'v100', mode: 'mps' })).toBe(true);
  const before = measured.splice(0);
  await bodyWith(measure)(payload, never);
  for (const shares of before) expect(measured).not.toContainEqual(shares);
});

test('each point is stored before the next one is measured', async () => {
  const atMeasurement: number[] = [];
  const body = bodyWith((jobs, shares, gpu, signal) => {
    atMeasurement.push(storedPoints);
    return measure(jobs, shares, gpu, signal);
  });
  await body(quotaSearchJob(request).payload, never);
  expect(atMeasurement).toEqual(measured.map((_, at) => at));
  expect(storedPoints).toBe(measured.length);
});

test('a measurement that cannot be fails the attempt and is not kept', async () => {
  const { payload } = quotaSearchJob(request);
  const poisoned = bodyWith(() => Promise.resolve([1, NaN, 1]));
  await expect(poisoned(payload, never)).rejects.toThrow('the measurement was refused: a slowdown of NaN');
  expect(table.rows()).toEqual([]);
});
