// What policies say of the GPUs that they did not choose: the rule that decided, with its numbers.
import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { ReportedPlace } from '../simulate/node-rows.js';
import type { Task } from '../view/view.js';
import { makePolicy } from './make-policy.js';
import type { PolicyChoice } from './make-policy.js';
import { dividedSms, fillingInTurn, gpuOf, profiledTask, runningTask, taskOf } from '../testing/fixtures.js';
import { viewOf } from '../testing/views.js';

interface Told {
  what: string;
  reason: string;
  numbers: Record<string, number>;
}

/** What is said about the last task. */
function rejectedBy(policy: PolicyChoice, gpus: readonly ReportedPlace[], waiting: readonly Task[]): Told[] {
  const needs = { predictorOf: () => dividedSms, admission: 'best-effort', random: seededRandom(1) } as const;
  const { rejected, starts } = makePolicy(policy, needs).decide(viewOf({ gpus, waiting }), { kind: 'timer' });
  const id = waiting.at(-1)!.id;
  const known = starts.find(({ task }) => task === id)?.choice?.rejected;
  return (known ?? rejected.filter(({ task }) => task === id)).map(({ what, reason, numbers }) => ({
    ...{ what, reason },
    numbers: Object.fromEntries(
      Object.entries(numbers).map(([name, value]) => [name, Math.round(value * 1000) / 1000]),
    ),
  }));
}

const loaded = (id: string, share: number): ReportedPlace =>
  gpuOf(id, { running: [runningTask(profiledTask(`on ${id}`, 100, share), share)] });
const full = gpuOf('full', { running: [runningTask(taskOf('r', { memoryMiB: 9500 }), 0.3)] });
const memory = { what: 'full', reason: 'too little free memory', numbers: { availableMiB: 500, needMiB: 1000 } };

test.each<[string, PolicyChoice, Told[]]>([
  [
    'faashare',
    'faashare',
    [
      memory,
      {
        ...{ what: 'heavy', reason: 'it and its neighbours would end later than on the chosen one' },
        numbers: { costMs: 106.857, chosenCostMs: 102.98 },
      },
    ],
  ],
  [
    'filling in turn',
    fillingInTurn,
    [
      {
        ...{ what: 'light', reason: "its score by 'best-fit' is higher than that of the chosen one" },
        numbers: { score: 0.7, chosenScore: 0.3, load: 0.1 },
      },
      memory,
    ],
  ],
  [
    'exclusive',
    'exclusive',
    [...['light', 'heavy'].map((what) => ({ what, reason: 'it is not free', numbers: { running: 1 } })), memory],
  ],
])('%s tells how a lightly and a heavily loaded GPU and one without memory differ', (_, policy, expected) => {
  const gpus = [loaded('light', 0.1), loaded('heavy', 0.5), full];
  expect(rejectedBy(policy, gpus, [profiledTask('t', 100, 0.2)])).toEqual(expected);
});

describe('least-loaded', () => {
  const fixed = (changes: Partial<Task> = {}): Task => taskOf('t', { share: 0.2, ...changes });
  const ranked = (gpus: ReportedPlace[], task = fixed()): Told[] => rejectedBy('least-loaded', gpus, [task]);

  test.each<[string, ReportedPlace[], string, Record<string, number>]>([
    [
      'a share that is left',
      [gpuOf('g0'), loaded('g1', 0.9)],
      'more than its SMs would be given away',
      { load: 0.9, chosenLoad: 0 },
    ],
    [
      'load',
      [gpuOf('g0'), loaded('g1', 0.5)],
      'more of its SMs are given away than of the chosen one',
      { load: 0.5, chosenLoad: 0 },
    ],
    [
      'memory',
      [gpuOf('g0'), gpuOf('g1', { memoryMiB: 9000 })],
      'less of its memory is free than of the chosen one',
      { freeMiB: 9000, chosenFreeMiB: 10_000 },
    ],
    [
      'order',
      [gpuOf('g0'), gpuOf('g1')],
      'as good as the chosen one, which is listed first',
      { load: 0, freeMiB: 10_000 },
    ],
    [
      'an instance',
      [gpuOf('g0', { idle: [{ function: '/a/f', namespace: 'a', share: 0.2, memoryMiB: 1000 }] }), gpuOf('g1')],
      'no instance of the function idles there, as on the chosen one',
      { load: 0, chosenLoad: 0 },
    ],
    [
      'idle instances of others',
      [gpuOf('g0'), gpuOf('g1', { idle: [{ function: '/a/g', namespace: 'a', share: 1, memoryMiB: 9500 }] })],
      'idle instances would have to go, unlike on the chosen one',
      { freeMiB: 500, chosenFreeMiB: 10_000 },
    ],
  ])('names %s', (_, gpus, reason, numbers) => {
    expect(ranked(gpus)).toEqual([{ what: 'g1', reason, numbers }]);
  });

  test('names a node that has too few alike', () => {
    const gpus = [gpuOf('g0', { node: 'a' }), loaded('g1', 0.1), loaded('g2', 0.1)].map((gpu) => ({
      ...gpu,
      mode: 'timeslice' as const,
    }));
    expect(ranked(gpus, fixed({ gpus: 2 }))).toEqual([
      { what: 'g0', reason: '2 alike are needed on one node', numbers: { load: 0, freeMiB: 10_000 } },
    ]);
  });
});

describe('faashare tells what is predicted', () => {
  const beside = (resident: Task, ...waiting: Task[]): Told[] =>
    rejectedBy('faashare', [gpuOf('g0', { running: [runningTask(resident, 1)] }), long], waiting);
  const long = gpuOf('long', { running: [runningTask(profiledTask('l', 9000, 1, { memoryMiB: 9500 }), 1)] });

  test.each<[string, Task, Task, string, string[]]>([
    [
      'of the deadline of the task',
      profiledTask('r', 500, 1),
      profiledTask('t', 100, 1, { sloMs: 120 }),
      'its deadline would be missed there',
      ['endsInMs', 'dueInMs'],
    ],
    [
      'of the deadline of another',
      profiledTask('r', 100, 1, { sloMs: 115 }),
      profiledTask('t', 100, 0.5, { sloMs: 195 }),
      'a deadline of those that are there would be missed',
      ['endsInMs', 'dueInMs'],
    ],
    [
      'of the end of all that runs',
      profiledTask('r', 9000, 1),
      profiledTask('t', 100, 1),
      'it would be done after all other GPUs',
      ['endsInMs', 'latestInMs'],
    ],
    [
      'of the gain',
      profiledTask('r', 100, 1),
      profiledTask('t', 100, 1),
      'the GPU would do too little more work',
      ['rate', 'least'],
    ],
  ])('%s', (_, resident, task, reason, names) => {
    const told = beside(resident, task).find(({ what }) => what === 'g0');
    expect([told?.what, told?.reason, Object.keys(told?.numbers ?? {})]).toEqual(['g0', reason, names]);
    for (const value of Object.values(told?.numbers ?? {})) expect(Number.isFinite(value)).toBe(true);
  });

  test('of a GPU where tasks before it did not fit', () => {
    const waiting = ['a', 'b', 'c', 'd', 't'].map((id) => profiledTask(id, 100, 1));
    expect(beside(profiledTask('r', 100, 1), ...waiting)).toEqual([
      { what: 'g0', reason: 'tasks before it did not fit there', numbers: { tried: 4, beside: 1 } },
      { ...memory, what: 'long' },
    ]);
  });
});
