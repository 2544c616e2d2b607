import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { compositionOf, makePolicy } from './make-policy.js';
import type { PolicyChoice } from './make-policy.js';
import { dividedSms, gpuOf, profiledTask } from '../testing/fixtures.js';
import { viewOf } from '../testing/views.js';

const startsOf = (choice: PolicyChoice, arrivals: readonly [string, number, number][]): string[] => {
  const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' } as const;
  const waiting = arrivals.map(([id, arrivedAt, soloMs]) => profiledTask(id, soloMs, 1, { arrivedAt }));
  const { starts } = makePolicy(choice, needs).decide(viewOf({ at: 10, gpus: [gpuOf('g0')], waiting }), {
    kind: 'timer',
  });
  return starts.map(({ task }) => task);
};

describe('a policy that starts from another', () => {
  test('has the stages that it replaces, and the others', () => {
    const arrivals = [
      ['long', 0, 500],
      ['short', 5, 50],
    ] as [string, number, number][];
    expect(startsOf('exclusive', arrivals)).toEqual(['long']);
    expect(startsOf({ base: 'exclusive', order: 'shortest-first' }, arrivals)).toEqual(['short']);
    expect(startsOf({ base: 'faashare', order: 'fifo', share: 'whole', place: 'first-fit' }, arrivals)).toEqual([
      'long',
    ]);
  });

  test('is named by what it is made of', () => {
    expect(compositionOf('faashare')).toMatchObject({ name: 'faashare', stages: { plan: 'sub-queues' } });
    const changed = compositionOf({
      base: 'exclusive',
      order: 'due-first',
      share: 'unlimited',
      settings: { slots: 3 },
    });
    expect(changed.name).toBe('exclusive order=due-first share=unlimited slots=3');
    expect(changed.stages).toEqual({
      ...{ admit: 'before-slo', order: 'due-first', share: 'unlimited', place: 'first-fit' },
      ...{ preempt: 'none', scale: 'none', geometry: 'none', procure: 'none' },
    });
    const planned = compositionOf({ base: 'exclusive', plan: 'sub-queues' });
    expect(planned.stages).toEqual({
      ...{ admit: 'before-slo', plan: 'sub-queues' },
      ...{ preempt: 'none', scale: 'none', geometry: 'none', procure: 'none' },
    });
    // The former name of a stage.
    expect(compositionOf({ base: 'faashare', admit: 'everybody' }).stages.admit).toBe('always');
  });

  test('has its settings', () => {
    const four = [1, 2, 3, 4].map((at): [string, number, number] => [`t${at}`, at, 100]);
    const shared = { base: 'exclusive', share: 'unlimited' };
    expect(startsOf(shared, four)).toHaveLength(2);
    expect(startsOf({ ...shared, settings: { slots: 3 } }, four)).toHaveLength(3);
  });

  test('has stage geometry beside any others: it is asked on ticks, shown, saved and taken up again', () => {
    const choice = { base: 'least-loaded', geometry: 'protean', settings: { recutWindowS: 10 } };
    expect(compositionOf(choice).name).toBe('least-loaded geometry=protean recutWindowS=10');
    const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' } as const;
    const policy = makePolicy(choice, needs);
    expect([policy.scales, makePolicy('least-loaded', needs).scales]).toEqual([true, false]);
    const task = profiledTask('t', 1000, 0.1);
    const arrivals = { bySecond: () => new Uint32Array(60).fill(1), byMinute: () => new Uint32Array(1440) };
    const device = { id: 'g', node: 'n', type: 'h100', mode: 'mps' as const, geometries: [], places: [{ id: 'g' }] };
    const tick = (one: typeof policy, at: number) =>
      one.decide(viewOf({ at, functions: [{ task, arrivals }], devices: [device] }), { kind: 'tick' }).actions;
    for (const at of [0, 10_000, 20_000]) expect(tick(policy, at)).toEqual([]);
    expect(policy.geometry?.()?.devices).toEqual([{ device: 'g', profiles: [], mismatches: 2 }]);
    const other = makePolicy(choice, needs);
    other.restore?.(policy.saved?.());
    expect(tick(other, 30_000)).toEqual([
      expect.objectContaining({ kind: 'cut', device: 'g', profiles: ['4g.40gb', '2g.20gb', '1g.10gb'] }),
    ]);
  });

  const refused: [PolicyChoice, string][] = [
    ['constructor', "there is no policy 'constructor'; there are auto, faashare, "],
    [{ base: 'nonsense' }, "there is no policy 'nonsense'"],
    [{ base: 'exclusive', order: 'toString' }, "there is no order stage 'toString'; there are fifo, "],
    [
      { base: 'exclusive', sort: 'fifo' } as PolicyChoice,
      "there is no stage 'sort'; there are admit, order, share, place, plan",
    ],
    [{ base: 'faashare', order: 'fifo' }, 'with order set, share, place must be set too'],
    [{ base: 'exclusive', plan: 'sub-queues', order: 'fifo' }, 'order cannot be set beside it'],
    [{ base: 'exclusive', settings: { slots: 3 } }, "have no setting 'slots'; they have none"],
    [{ base: 'faashare', settings: { slots: 3 } }, "have no setting 'slots'; there are minGain, "],
    [{ base: 'exclusive', geometry: 'square' }, "there is no geometry stage 'square'; there are none, protean"],
    [{ base: 'exclusive', settings: null } as never, "'settings' must be an object"],
    [{ base: 'exclusive', share: 'unlimited', settings: { slots: NaN } }, "setting 'slots' is no number from 0"],
  ];
  test.each(refused)('%j is refused', (choice, message) => {
    expect(() => compositionOf(choice)).toThrow(RangeError);
    expect(() => compositionOf(choice)).toThrow(message);
  });
});
