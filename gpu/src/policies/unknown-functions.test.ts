// What every policy but `exclusive` does with functions that declare nothing.
import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { SetTrials } from '../share/set-trials.js';
import type { ReportedPlace } from '../simulate/node-rows.js';
import { dividedSms, gpuOf, runningTask, taskOf } from '../testing/fixtures.js';
import { viewOf } from '../testing/views.js';
import type { Task } from '../view/view.js';
import { makePolicy } from './make-policy.js';
import { policies } from './registry.js';

const plain = (id: string, changes: Partial<Task> = {}): Task => taskOf(id, { function: `/a/${id}`, ...changes });
const [f, g, h] = ['f', 'g', 'h'].map((id) => plain(id)) as [Task, Task, Task];

/** Trials of runs of 100 ms alone, and of five runs each of two that took so much longer together, at their share of this policy. */
function trialsOf(pair: readonly Task[], share: number, slowdown: number): SetTrials {
  const trials = new SetTrials();
  const ran = (task: Task, ranMs: number, others: readonly Task[]): void => {
    const beside = others.map((one) => ({ task: one, share, part: 1 }));
    trials.ran({ task, gpu: { id: 'g9', gpuType: 't', mode: 'mps' }, share, ranMs, endedAt: 0, beside });
  };
  for (const task of pair) for (let run = 0; run < 4; run += 1) ran(task, 100, []);
  for (let run = 0; run < 5; run += 1) {
    for (const task of pair)
      ran(
        task,
        100 * slowdown,
        pair.filter((one) => one !== task),
      );
  }
  return trials;
}

describe.each(Object.keys(policies).filter((name) => name !== 'exclusive'))('policy %s', (name) => {
  const decide = (waiting: readonly Task[], gpu: Partial<ReportedPlace> = {}, setTrials = new SetTrials()) => {
    const needs = {
      predictorOf: () => dividedSms,
      admission: 'best-effort',
      random: seededRandom(1),
      setTrials,
    } as const;
    return makePolicy(name, needs).decide(viewOf({ gpus: [gpuOf('g0', gpu)], waiting }), { kind: 'timer' });
  };
  const started = (...asked: Parameters<typeof decide>): string[] =>
    decide(...asked)
      .starts.map(({ task }) => task)
      .sort();
  const running = (...tasks: Task[]) => ({ running: tasks.map((one) => runningTask(one, 1)) });
  // As the policy gives it: what a set is measured at.
  const share = decide([f]).starts[0]?.choice?.placement?.share.smLimit ?? 1;

  test('starts two on one GPU, and no third', () => {
    expect(started([f, g])).toEqual(['f', 'g']);
    expect(started([f, g, h])).toHaveLength(2);
    expect(started([h], running(f, g))).toEqual([]);
  });

  // Instances of dilu come with load that lasts.
  if (name !== 'dilu') {
    test('starts two of eight calls of one function', () => {
      const calls = Array.from({ length: 8 }, (_, at) => plain(`f${at}`, { function: '/a/f', soloMs: 1000 }));
      expect(started(calls)).toHaveLength(2);
    });
  }

  test('keeps a pair that gains, and splits one that does not', () => {
    expect(started([f, g], {}, trialsOf([f, g], share, 1.3))).toEqual(['f', 'g']);
    const split = trialsOf([f, g], share, 2.3);
    expect(started([f, g], {}, split)).toHaveLength(1);
    expect(started([f, g, h], {}, split)).toHaveLength(2);
  });

  test('has none of them beside one with an SLO, nor the other way round', () => {
    const strict = plain('s', { sloMs: 60_000, soloMs: 100 });
    expect(started([f], running(strict))).toEqual([]);
    expect(started([strict], running(f))).toEqual([]);
  });

  test('goes by memory first', () => {
    expect(started([f, g].map((one) => ({ ...one, memoryMiB: 6000 })))).toHaveLength(1);
  });
});
