import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { Policy } from '../policies/policy.js';
import { taskOf } from '../testing/fixtures.js';
import { allWait } from '../view/decision.js';
import { replay } from './replay.js';

const truth = { noise: 0, slowdowns: () => Float64Array.of(1), used: () => 1 };
const places = [{ id: 'g', node: 'n', type: 't', mode: 'mps' as const, memoryMiB: 10_000 }];
const job = { workload: 'f', soloMs: 100, startMs: 0, task: taskOf('t', { arrivedAt: 1000 }) };

test('a policy is asked again when it wants to be, though nothing happens', () => {
  const asked: number[] = [];
  const patient: Policy = {
    name: 'patient',
    decide(view) {
      asked.push(view.at);
      if (view.at < 1500) return { ...allWait(view), wakeAt: view.at + 250 };
      const starts = view.waiting.map(({ id }) => ({ task: id, gpu: 'g', share: 1, reason: '' }));
      return { ...allWait(view), starts, order: [] };
    },
  };
  const { finished } = replay([job], { places }, truth, patient, seededRandom(1));
  expect(asked).toEqual([1000, 1250, 1500]);
  expect(finished.map(({ startedAt }) => startedAt)).toEqual([1500]);
});

test('a policy that wants to be asked at once, for ever, lets time pass all the same', () => {
  const hasty: Policy = {
    name: 'hasty',
    decide: (view) =>
      view.at < 1010
        ? { ...allWait(view), wakeAt: 0 }
        : { ...allWait(view), starts: [{ task: 't', gpu: 'g', share: 1, reason: '' }], order: [] },
  };
  expect(replay([job], { places }, truth, hasty, seededRandom(1)).finished[0]?.startedAt).toBe(1010);
});
