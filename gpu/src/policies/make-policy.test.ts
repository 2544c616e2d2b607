import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { compositionOf, makePolicy } from './make-policy.js';
import type { PolicyChoice } from './make-policy.js';
import { dividedSms, gpuOf, profiledTask } from '../testing/fixtures.js';

const startsOf = (choice: PolicyChoice, arrivals: readonly [string, number, number][]): string[] => {
  const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' } as const;
  const waiting = arrivals.map(([id, arrivedAt, soloMs]) => profiledTask(id, soloMs, 1, { arrivedAt }));
  const { starts } = makePolicy(choice, needs).decide({ at: 10, gpus: [gpuOf('g0')], waiting }, { kind: 'timer' });
  return starts.map(({ task }) => task);
};

describe('a policy that starts from another', () => {
  test('has the stages that it replaces, and the others', () => {
    const arrivals = [
      ['long', 0, 500],
      ['short', 5, 50],
    ] as [string, number, number][];
    expect(startsOf('fcfs', arrivals)).toEqual(['long']);
    expect(startsOf({ base: 'fcfs', order: 'shortest-first' }, arrivals)).toEqual(['short']);
    expect(startsOf({ base: 'faashare', order: 'fifo', share: 'whole', place: 'first-fit' }, arrivals)).toEqual([
      'long',
    ]);
  });

  test('is named by what it is made of', () => {
    expect(compositionOf('faashare')).toMatchObject({ name: 'faashare', stages: { plan: 'sub-queues' } });
    const changed = compositionOf({ base: 'mps-equal', order: 'due-first', settings: { slots: 3 } });
    expect(changed.name).toBe('mps-equal order=due-first slots=3');
    expect(changed.stages).toEqual({
      ...{ admit: 'before-slo', order: 'due-first', share: 'unlimited', place: 'fewest-tasks' },
      ...{ preempt: 'none', scale: 'none', procure: 'none' },
    });
    const planned = compositionOf({ base: 'fcfs', plan: 'sub-queues' });
    expect(planned.stages).toEqual({
      admit: 'before-slo',
      plan: 'sub-queues',
      preempt: 'none',
      scale: 'none',
      procure: 'none',
    });
    // The former name of a stage.
    expect(compositionOf({ base: 'faashare', admit: 'everybody' }).stages.admit).toBe('always');
  });

  test('has its settings', () => {
    const four = [1, 2, 3, 4].map((at): [string, number, number] => [`t${at}`, at, 100]);
    expect(startsOf('mps-equal', four)).toHaveLength(2);
    expect(startsOf({ base: 'mps-equal', settings: { slots: 3 } }, four)).toHaveLength(3);
  });

  const refused: [PolicyChoice, string][] = [
    ['constructor', "there is no policy 'constructor'; there are faashare, "],
    [{ base: 'nonsense' }, "there is no policy 'nonsense'"],
    [{ base: 'fcfs', order: 'toString' }, "there is no order stage 'toString'; there are fifo, "],
    [
      { base: 'fcfs', sort: 'fifo' } as PolicyChoice,
      "there is no stage 'sort'; there are admit, order, share, place, plan",
    ],
    [{ base: 'faashare', order: 'fifo' }, 'with order set, share, place must be set too'],
    [{ base: 'fcfs', plan: 'sub-queues', order: 'fifo' }, 'order cannot be set beside it'],
    [{ base: 'fcfs', settings: { slots: 3 } }, "have no setting 'slots'; they have none"],
    [{ base: 'faashare', settings: { slots: 3 } }, "have no setting 'slots'; there are minGain, "],
    [{ base: 'mps-equal', settings: null } as never, "'settings' must be an object"],
    [{ base: 'mps-equal', settings: { slots: NaN } }, "setting 'slots' is no number from 0"],
  ];
  test.each(refused)('%j is refused', (choice, message) => {
    expect(() => compositionOf(choice)).toThrow(RangeError);
    expect(() => compositionOf(choice)).toThrow(message);
  });
});
