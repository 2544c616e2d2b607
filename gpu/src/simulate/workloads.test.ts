import { expect, test } from '@jest/globals';
import type { PlaceAccount } from '../ledger/account.js';
import { newTotals } from './replay.js';
import { SimulatedActuator } from './simulated-actuator.js';
import { actionTimes } from './simulated-times.js';

test('a workload holds the memory that it says, as a process of others', () => {
  const actuator = new SimulatedActuator({
    places: [
      { id: 'g0', node: 'n', type: 't', mode: 'mps', memoryMiB: 10_000 },
      { id: 'g1', node: 'n', type: 'a100-40', mode: 'mps', memoryMiB: 38_000, profiles: ['3g.20gb', '3g.20gb'] },
    ],
    workloads: ['g0', 'g0', 'g1:3g.20gb-2'].map((gpu, at) => ({
      ...{ id: `w${at}`, gpu, workload: 'training', memoryMiB: 3000, tolerated: 0.1, baseline: 1, noise: 0 },
    })),
    ...{ keepsInstances: false, times: actionTimes, known: () => undefined },
    truth: { noise: 0, slowdowns: (all) => new Float64Array(all.length).fill(1), used: () => 1 },
  });
  const sumsOf = ({ capacityMiB, foreignMiB, availableMiB, workloads }: PlaceAccount): number[] => {
    return [capacityMiB, foreignMiB, availableMiB, workloads];
  };
  const [whole, free, used] = actuator.ledger.ledger.accounts().map(sumsOf);
  expect(whole).toEqual([10_000, 6000, 4000, 2]);
  const [capacityMiB = NaN] = free ?? [];
  expect(free).toEqual([capacityMiB, 0, capacityMiB, 0]);
  expect(used).toEqual([capacityMiB, 3000, capacityMiB - 3000, 1]);
  // The truth agrees: nothing larger is started beside them, and what is free is counted without them.
  const task = { id: 't', function: '/a/f', version: '1', namespace: 'a', batch: 1, gpus: 1, memoryMiB: 4001 };
  const job = { workload: 'f', soloMs: 1, startMs: 0, task: { ...task, arrivedAt: 0, class: 'inference' as const } };
  expect(() => actuator.start({ job, task: job.task }, { gpu: 'g0', share: 1 }, 1, 1)).toThrow('lacks the memory');
  const totals = newTotals();
  actuator.advance(10, [job.task], totals);
  expect(totals.freeMiBMs).toBe(10 * (4000 + 2 * capacityMiB - 3000));
});
