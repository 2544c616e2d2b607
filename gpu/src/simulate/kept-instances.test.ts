import { expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { Policy } from '../policies/policy.js';
import type { Task } from '../view/view.js';
import { instanceOf, startAmong } from './simulated-gpu.js';
import { replay, type ReplayJob } from './replay.js';

const task: Task = {
  ...{ id: 't', function: '/guest/f', version: '0.0.1', namespace: 'guest', batch: 1, gpus: 1 },
  ...{ memoryMiB: 400, arrivedAt: 0, class: 'inference' },
};
const idle = (name: string, share: number, memoryMiB = 400) =>
  instanceOf({ ...task, function: name, memoryMiB }, share);

test('a task takes the smallest process of its function that has the share', () => {
  const there = [idle('/guest/f', 1), idle('/guest/f', 0.5), idle('/guest/f', 0.3), idle('/guest/g', 0.5)];
  const started = startAmong(there, task, 0.4, 2000);
  expect(started).toEqual({ share: 0.5, reused: there[1], idle: [there[0], there[2], there[3]] });
});

test('a new process has a share class, and the largest go for it', () => {
  const there = [idle('/guest/a', 1, 100), idle('/guest/b', 1, 300), idle('/guest/c', 1, 200)];
  const { share, reused, idle: left } = startAmong(there, task, 0.4, 750);
  expect([share, reused, left.map((one) => one.function)]).toEqual([0.5, undefined, ['/guest/a', '/guest/c']]);
});

test('another namespace has processes of its own', () => {
  expect(startAmong([idle('/guest/f', 1)], { ...task, namespace: 'other' }, 1, 2000).reused).toBeUndefined();
});

test('in a replay the second run of a function starts warm, in what the first has left', () => {
  const job = (id: string, arrivedAt: number): ReplayJob => ({
    workload: 'f',
    soloMs: 100,
    startMs: 50,
    task: { ...task, id, arrivedAt },
  });
  const greedy: Policy = {
    name: 'all at once',
    decide: ({ ledger, waiting }) => ({
      starts: waiting.map(({ id }) => ({ task: id, gpu: ledger.ledger.accounts()[0]!.id, share: 1, reason: '' })),
      ...{ refused: [], bestEffort: [], order: [], rejected: [] },
    }),
  };
  const places = [{ id: 'gpu0', node: 'node0', type: 'v100', mode: 'mps', memoryMiB: 1000 }] as const;
  const truth = { noise: 0, slowdowns: () => Float64Array.of(1), used: () => 1 };
  const ends = (kept?: { warmMs: number }): number[] =>
    replay([job('a', 0), job('b', 500)], { places, ...kept }, truth, greedy, seededRandom(1)).finished.map(
      ({ finishedAt }) => finishedAt,
    );
  expect(ends({ warmMs: 5 })).toEqual([150, 605]);
  expect(ends()).toEqual([150, 650]);
});
