import { expect, test } from '@jest/globals';
import { taskOf } from '@gpuwhisk/gpu/testing/fixtures';
import { newShareCounts } from '@gpuwhisk/gpu/share/share-counts';
import { newTotals } from '@gpuwhisk/gpu/simulate/replay';
import type { FinishedJob } from '@gpuwhisk/gpu/simulate/replay';
import { metricsOf, waitsOf } from './metrics.js';

const job = (arrivedAt: number, startedAt: number, ranMs: number, sloMs?: number): FinishedJob => ({
  job: {
    task: taskOf('t', { arrivedAt, soloMs: 1, ...(sloMs !== undefined && { sloMs }) }),
    workload: 'w',
    soloMs: 1,
    startMs: 0,
  },
  startedAt,
  finishedAt: startedAt + ranMs,
  gpu: 'g',
  gpuType: 't',
});

test('a job that starts within its bound has waited for less than that', () => {
  expect(waitsOf([job(0, 5, 10)], 10, 1)).toEqual({ longestWaitMs: 5, overdue: 0, waitOverBound: 0.25 });
});

test('an overdue job may wait for the runs of jobs overdue before it, and for the longest run', () => {
  // The second is overdue at 11 and the first at 10; both still wait then.
  const jobs = [job(0, 20, 10), job(1, 46, 5)];
  expect(waitsOf(jobs, 10, 1)).toEqual({ longestWaitMs: 45, overdue: 1, waitOverBound: 45 / 30 });
  expect(waitsOf(jobs, 10, 2).waitOverBound).toBe(45 / 25);
  expect(waitsOf([job(0, 100, 10)], 10, 1).waitOverBound).toBe(5);
});

test('a strict job is overdue when its SLO has passed at the earliest', () => {
  expect(waitsOf([job(0, 50, 10, 100)], 10, 1)).toMatchObject({ overdue: 0, waitOverBound: 50 / 110 });
  expect(waitsOf([], 10, 1)).toEqual({ longestWaitMs: 0, overdue: 0, waitOverBound: 0 });
});

test('answers of the table are parts of the choices that put jobs together', () => {
  const shares = newShareCounts();
  shares.hit = { choices: 3, taken: 1, chosenMs: 90, fillingMs: 100 };
  shares.near = { choices: 1, taken: 1, chosenMs: 120, fillingMs: 100 };
  const run = {
    finished: [job(0, 5, 10)],
    refused: [],
    stopped: [],
    actions: [],
    decideUs: [],
    workloads: [],
    machines: [],
    totals: newTotals(),
  };
  const parts = { tableHitShare: 0.75, tableNearShare: 0.25, tableNearRegret: expect.closeTo(0.2, 9) };
  expect(metricsOf({ ...run, shares }, 0, 10, 1)).toMatchObject(parts);
  const none = { tableHitShare: 0, tableNearShare: 0, tableNearRegret: 0 };
  expect(metricsOf({ ...run, shares: newShareCounts() }, 0, 10, 1)).toMatchObject(none);
});
