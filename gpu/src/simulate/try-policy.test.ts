import { expect, test } from '@jest/globals';
import { fillingInTurn, profiledTask } from '../testing/fixtures.js';
import { tryPolicies } from './try-policy.js';
import type { PolicyTrial } from './try-policy.js';

const shared = { base: 'exclusive', share: 'unlimited', place: 'fewest-tasks' };

const trial = (changes: Partial<PolicyTrial> = {}): PolicyTrial => ({
  policies: ['exclusive', { base: 'exclusive', order: 'shortest-first' }],
  admission: 'best-effort',
  tasks: [
    profiledTask('long', 1000, 1, { arrivedAt: 0 }),
    profiledTask('second', 900, 1, { arrivedAt: 1 }),
    profiledTask('short', 10, 1, { arrivedAt: 2, sloMs: 1500 }),
  ],
  places: [{ id: 'g0', node: 'n', type: 't', mode: 'mps', memoryMiB: 10_000 }],
  models: [],
  warmMs: 0,
  ...changes,
});

test('the same arrivals are replayed under each policy, and told side by side', () => {
  expect(tryPolicies(trial())).toEqual([
    {
      ...{ policy: 'exclusive', meanWaitMs: (999 + 1898) / 3, p99WaitMs: 1898, meanMs: (1000 + 1899 + 1908) / 3 },
      ...{ missed: 1, withSlo: 1, refused: 0, stopped: 0, gpuHours: 1910 / 3_600_000 },
    },
    {
      policy: 'exclusive order=shortest-first',
      ...{ meanWaitMs: (998 + 1009) / 3, p99WaitMs: 1009, meanMs: (1000 + 1008 + 1909) / 3 },
      ...{ missed: 0, withSlo: 1, refused: 0, stopped: 0, gpuHours: 1910 / 3_600_000 },
    },
  ]);
});

test('what cannot end is told, and tasks without a measured time are left out', () => {
  const large = profiledTask('large', 10, 1, { memoryMiB: 20_000 });
  const unmeasured = { ...profiledTask('unmeasured', 10, 1), soloMs: undefined } as never;
  const [result] = tryPolicies(trial({ policies: ['exclusive'], tasks: [large, unmeasured] }));
  expect(result).toMatchObject({ meanWaitMs: 0, problem: 'policy exclusive leaves 1 tasks waiting for ever' });
});

test('arrivals at epoch times fare as those from 0 on', () => {
  const at = 1_795_492_501_025;
  const tasks = Array.from({ length: 40 }, (_, n) =>
    profiledTask(`t${n}`, 50.123456 + n / 7, 0.3 + (n % 5) / 10, { arrivedAt: at + n * 13 }),
  );
  const early = tasks.map((task) => ({ ...task, arrivedAt: task.arrivedAt - at }));
  const policies = [fillingInTurn, shared, 'faashare'];
  const results = tryPolicies(trial({ policies, tasks }));
  expect(results).toEqual(tryPolicies(trial({ policies, tasks: early })));
  for (const one of results) expect(one).not.toHaveProperty('problem');
});

test('slowdowns are those that the predictor foresees', () => {
  const pair = ['a', 'b'].map((id) => profiledTask(id, 1000, 0.8));
  const [together] = tryPolicies(trial({ policies: [shared], tasks: pair }));
  const [alone] = tryPolicies(trial({ policies: ['exclusive'], tasks: pair }));
  expect(alone!.meanMs).toBeCloseTo(1500);
  expect(together!.meanMs).toBeGreaterThan(1500);
  expect(together!.meanWaitMs).toBe(0);
});
