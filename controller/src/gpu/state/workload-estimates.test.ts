import { expect, test } from '@jest/globals';
import type { DeviceMode, DeviceStatus, NodeStatus, Resident, Workload } from '@gpuwhisk/common/gpu';
import { fairPart, WorkloadEstimates } from './workload-estimates.js';

test.each([
  ['alone', 1, [], 1],
  ['beside an equal', 1, [1], 0.5],
  ['beside a smaller one', 1, [0.3], 0.7],
  ['beside ones that leave enough', 0.4, [0.3, 0.3], 0.4],
  ['beside a greater one', 0.4, [1], 0.4],
  ['beside many', 1, [1, 1, 0.1], 0.3],
])('a demand %s', (_, demand, others, part) => expect(fairPart(demand, others)).toBeCloseTo(part));

const workload: Workload = {
  ...{ id: 'w', name: 'w', origin: 'started', invoker: 'invoker0', device: 'GPU-0', since: 0, maxDegradation: 0.1 },
};
const running = (smLimit: number): Resident => ({
  ...{ container: 'c', device: 'GPU-0', memoryMiB: 1, activations: ['a'] },
  share: { shareClass: 100, smRequest: smLimit, smLimit, memoryMiB: 1 },
});

/** Estimates after rows with these functions and this look at the device. */
function after(
  rows: { functions?: Resident[]; look?: Partial<DeviceStatus> }[],
  mode: DeviceMode = 'mps',
): WorkloadEstimates {
  let tell: (node: NodeStatus) => void = () => undefined;
  const estimates = new WorkloadEstimates({ nodes: () => [], onRow: (one) => (tell = one), onGone: () => undefined });
  for (const { functions = [], look } of rows) {
    const device = { uuid: 'GPU-0', index: 0, name: 'n', type: 't', smCount: 1, memoryMiB: 1, mode, slices: [] };
    const health = { state: 'healthy' as const, reasons: [] };
    tell({
      ...{ invoker: 'invoker0', version: 1, at: 1, devices: [{ ...device, simulated: true }], residents: functions },
      status: [{ uuid: 'GPU-0', at: 1, usedMemoryMiB: 0, health, processes: [], ...look }],
    });
  }
  return estimates;
}
const beside = { functions: [running(0.5)] };
const busy = { utilisation: 1, smActivity: 0.6, processes: [{ pid: 1, memoryMiB: 1 }] };

test('an MPS client loses the SMs that functions may use', () => {
  const estimates = after([beside]);
  expect(estimates.estimateOf(workload)).toEqual({ estimatedDegradation: 0.5, estimatedFrom: 'shares' });
  const half = estimates.estimateOf({ ...workload, mpsPercent: 50 });
  expect(half).toEqual({ estimatedDegradation: 0, estimatedFrom: 'shares' });
});

test('an MPS client that is known to fill a part of the SMs loses less', () => {
  const estimates = after([{ look: busy }, { look: busy }, beside]);
  const expected = { estimatedDegradation: expect.closeTo(1 - 0.5 / 0.6), estimatedFrom: 'activity' };
  expect(estimates.estimateOf(workload)).toEqual(expected);
});

test.each<[string, Partial<DeviceStatus>]>([
  ['with pauses', { utilisation: 0.5 }],
  ['beside another process', { processes: [...busy.processes, { pid: 2, memoryMiB: 1 }] }],
  ['of a function', { processes: [{ pid: 1, memoryMiB: 1, container: 'c' }] }],
  ['that the chip does not tell', { smActivity: undefined } as object],
])('an activity %s is not taken', (_, look) => {
  const row = { look: { ...busy, ...look } };
  expect(after([row, row, beside]).estimateOf(workload)?.estimatedFrom).toBe('shares');
});

test('what a workload fills is known from looks at it alone, and forgotten with its process', () => {
  const looks = [0.58, 0.61, 0.4].map((smActivity) => ({
    look: { ...busy, smActivity, dramActivity: smActivity / 2 },
  }));
  expect(after([{ look: busy }, ...looks, beside]).featuresOf(workload)).toEqual({ smUtil: 0.61, dramUtil: 0.31 });
  expect(after([beside]).featuresOf(workload)).toBeUndefined();
  const other = { look: { ...busy, smActivity: 0.2, processes: [{ pid: 2, memoryMiB: 1 }] } };
  expect(after([{}, ...looks, other]).featuresOf(workload)).toEqual({ smUtil: 0.2 });
  const told = { look: { ...busy, processes: [{ pid: 1, memoryMiB: 1, workload: 'another' }] } };
  expect(after([{}, told]).featuresOf(workload)).toBeUndefined();
});

test('an activity that may be that of a function is not taken', () => {
  expect(after([beside, { look: busy }, beside]).estimateOf(workload)?.estimatedFrom).toBe('shares');
});

test('a process that is no MPS client takes turns', () => {
  const registered = { ...workload, origin: 'registered' } as const;
  const two = [{ functions: [running(0.5), running(0.5)] }];
  expect(after(two).estimateOf(registered)?.estimatedDegradation).toBeCloseTo(1 / 2);
  expect(after(two, 'timeslice').estimateOf(registered)?.estimatedDegradation).toBeCloseTo(2 / 3);
});

test('there is no estimate without functions, under MIG, or of an unknown device', () => {
  expect(after([{}]).estimateOf(workload)).toBeUndefined();
  expect(after([beside], 'mig').estimateOf(workload)).toBeUndefined();
  expect(after([beside]).estimateOf({ ...workload, device: 'GPU-1' })).toBeUndefined();
});
