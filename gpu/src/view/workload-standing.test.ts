import { expect, test } from '@jest/globals';
import { standingOf, workloadStaleMs } from './workload-standing.js';

const reported = { baselineRate: 10, rate: 9, reportedAt: 1000, maxDegradation: 0.1 };

test.each([
  ['at its bound', {}, { state: 'within-bound', degradation: expect.closeTo(0.1) }],
  ['slower than its bound', { rate: 8 }, { state: 'beyond-bound', degradation: expect.closeTo(0.2) }],
  ['faster than alone', { rate: 12 }, { state: 'within-bound', degradation: 0 }],
  ['nearly stalled', { rate: 1e-6 }, { state: 'beyond-bound', degradation: expect.closeTo(1) }],
  ['that tolerates nothing', { maxDegradation: 0 }, { state: 'beyond-bound', degradation: expect.closeTo(0.1) }],
  ['without a baseline', { baselineRate: undefined }, { state: 'no-baseline' }],
  ['that never reported', { rate: undefined, reportedAt: undefined }, undefined],
  ['with a rate of unknown time', { reportedAt: undefined }, undefined],
])('a workload %s', (_, changes, expected) => {
  expect(standingOf({ ...reported, maxDegradation: 0.1 + 1e-9, ...changes } as typeof reported, 1000)).toEqual(
    expected,
  );
});

test('a workload that stopped reporting is stale, however well it was', () => {
  const at = (ms: number) => standingOf({ ...reported, rate: 10 }, 1000 + ms);
  expect(at(workloadStaleMs)).toEqual({ state: 'within-bound', degradation: 0 });
  expect(at(workloadStaleMs + 1)).toEqual({ state: 'stale' });
  expect(at(-workloadStaleMs - 1)).toEqual({ state: 'stale' });
});
