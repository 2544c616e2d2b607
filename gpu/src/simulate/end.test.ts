import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { Policy } from '../policies/policy.js';
import { allWait } from '../view/decision.js';
import { replay } from './replay.js';
import type { ReplayJob } from './replay.js';

const truth = { noise: 0, used: () => 1, slowdowns: (all: readonly unknown[]) => new Float64Array(all.length).fill(1) };
const places = [{ id: 'gpu0', node: 'n', type: 't', mode: 'mps', memoryMiB: 1000 } as const];
const task = {
  function: '/a/f',
  version: '1',
  namespace: 'a',
  batch: 1,
  gpus: 1,
  memoryMiB: 10,
  class: 'inference',
} as const;
const job = (id: string): ReplayJob => ({
  workload: 'f',
  soloMs: 100,
  startMs: 0,
  task: { ...task, id, arrivedAt: 0 },
});
const startsFirst: Policy = {
  name: 'starts-the-first',
  decide: (view, event) => {
    const starts = event.kind === 'arrival' ? [{ task: 'one', gpu: 'gpu0', share: 1, reason: 'test' }] : [];
    return { ...allWait(view), starts };
  },
};

test('a replay with an end leaves what waits or runs then; one without an end says that work waits for ever', () => {
  const jobs = [job('one'), job('two')];
  const at = (endMs?: number): string[] => {
    const cluster = { places, ...(endMs !== undefined && { endMs }) };
    return replay(jobs, cluster, truth, startsFirst, seededRandom(1)).finished.map((one) => one.job.task.id);
  };
  expect(at(99)).toEqual([]);
  expect(at(100)).toEqual(['one']);
  expect(at(1000)).toEqual(['one']);
  expect(() => at()).toThrow('leaves 1 tasks waiting for ever');
});
