// PROTEAN's algorithms as they are printed.
import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { learnedSlices } from '@gpuwhisk/gpu/algorithms/protean/slice-model';
import { SliceSlowdowns } from '@gpuwhisk/gpu/algorithms/protean/slowdowns';
import { makePolicy } from '@gpuwhisk/gpu/policies/make-policy';
import type { ReportedPlace } from '@gpuwhisk/gpu/simulate/node-rows';
import type { Geometry } from '@gpuwhisk/gpu/stages/geometry/geometry';
import { dividedSms, gpuOf, profiledTask, runningTask } from '@gpuwhisk/gpu/testing/fixtures';
import { ledgerWith, viewOf } from '@gpuwhisk/gpu/testing/views';
import type { DeviceState, FunctionState, Task, View } from '@gpuwhisk/gpu/view/view';
import { literalGeometry, literalGeometryDefaults } from './protean-literal-geometry.js';
import './register.js';

describe('algorithm 1', () => {
  const slice = (id: string, profile: string, memoryMiB: number, more: Partial<ReportedPlace> = {}): ReportedPlace =>
    gpuOf(id, { type: `a100-40:${profile}`, mode: 'mig', device: 'd', memoryMiB, ...more });
  const slices = [slice('4g', '4g.20gb', 19_000), slice('2g', '2g.10gb', 9000), slice('1g', '1g.5gb', 4500)];
  const startsOf = (waiting: Task[], gpus = slices): Record<string, string> => {
    const needs = { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' } as const;
    const { starts } = makePolicy('protean-literal', needs).decide(viewOf({ at: 1, gpus, waiting }), { kind: 'timer' });
    return Object.fromEntries(starts.map(({ task, gpu }) => [task, gpu]));
  };
  const strict = (id: string, smUtil: number, more: Partial<Task> = {}): Task =>
    profiledTask(id, 100, smUtil, { function: `/a/${id}`, sloMs: 1000, memoryMiB: 2000, ...more });
  const rest = (id: string, more: Partial<Task> = {}): Task =>
    profiledTask(id, 100, 0.1, { function: '/a/rest', memoryMiB: 2000, ...more });

  test('strict work goes to the slice of least deficiency and contention, best effort to the first of the smallest', () => {
    expect(startsOf([rest('be'), strict('s', 0.9)])).toEqual({ s: '4g', be: '1g' });
    // Of slices without deficiency the one where less bandwidth is asked for: FBR 0.45 + 0.8 on 4g.
    const busy = runningTask(
      profiledTask('r', 100, 1, { function: '/a/r', features: { smUtil: 0.1, dramUtil: 0.8 } }),
      1,
    );
    const [large, ...others] = slices as [ReportedPlace, ...ReportedPlace[]];
    const beside = [{ ...large, running: [busy] }, ...others];
    const light = strict('s', 0.1, { features: { smUtil: 0.1, dramUtil: 0.45 } });
    const known = rest('known', { function: '/a/r', features: { smUtil: 0.1, dramUtil: 0.8 } });
    expect(startsOf([light, known], beside)).toMatchObject({ s: '2g' });
  });

  test('strict work avoids slices that waiting best effort fills (tag 1), unless it fills all', () => {
    const figures = (dramUtil: number): Partial<Task> => ({ features: { smUtil: 0.1, dramUtil } });
    const busy = runningTask(profiledTask('r', 100, 0.1, { function: '/a/r', ...figures(0.9) }), 1);
    const [large, ...others] = slices as [ReportedPlace, ...ReportedPlace[]];
    const gpus = [{ ...large, running: [busy] }, ...others];
    const small = strict('s', 0.1, figures(0.3));
    const known = strict('known', 0.1, { function: '/a/r', ...figures(0.9), arrivedAt: 1, allowed: new Set(['none']) });
    const waiting = (count: number): Task[] => [
      ...[small, known],
      ...Array.from({ length: count }, (_, at) => rest(`be${at}`, figures(0))),
    ];
    // Alone it is soonest on the smaller slices, where no other task asks for bandwidth.
    expect(startsOf(waiting(0), gpus)['s']).toBe('2g');
    // 16 GB of best effort fill 1g and 2g, 80 GB all.
    expect(startsOf(waiting(8), gpus)['s']).toBe('4g');
    expect(startsOf(waiting(40), gpus)['s']).toBe('2g');
  });

  test('best effort starts beside strict work and takes the last slice, too', () => {
    const waiting = [...Array.from({ length: 20 }, (_, at) => rest(`be${at}`)), strict('s', 1)];
    const there = Object.entries(startsOf(waiting)).filter(([, gpu]) => gpu === '4g');
    expect(there.map(([task]) => task)).toContain('s');
    expect(there.length).toBeGreaterThan(5);
  });
});

describe('algorithm 2', () => {
  const functionOf = (name: string, perSecond: number, changes: Partial<Task>): FunctionState => {
    const task = profiledTask(name, 1000, 0.2, { function: `/a/${name}`, ...changes });
    const of = (length: number) => (): Uint32Array => new Uint32Array(length).fill(perSecond);
    return { task, arrivals: { bySecond: of(60), byMinute: of(1440) }, runMs: 1000 };
  };
  const bestEffort = (batches: number): FunctionState => functionOf('rest', batches, { memoryMiB: 1000 });
  const device = (profiles: readonly string[]): DeviceState => {
    const places = profiles.map((profile, at) => ({ id: `d:${at}`, profile }));
    return { id: 'd', node: 'n', type: 'a100-40', mode: 'mig', geometries: [], places };
  };
  const [large, small] = [
    ['4g.20gb', '3g.20gb'],
    ['4g.20gb', '2g.10gb', '1g.5gb'],
  ];
  const windowMs = literalGeometryDefaults.recutWindowS * 1000;
  /** What is cut at the end of each of the windows. */
  const cutsOf = (stage: Geometry, from: number, windows: readonly Pick<View, 'functions' | 'devices'>[]): string[] =>
    windows.map((seen, at) => {
      const cuts = stage.cuts({ at: (from + at) * windowMs, ledger: ledgerWith([]), ...seen });
      return cuts.map(({ profiles }) => profiles.join('+')).join();
    });
  const newStage = (): Geometry => {
    const stage = literalGeometry(literalGeometryDefaults, learnedSlices(new SliceSlowdowns()));
    stage.cuts({ at: 0, ledger: ledgerWith([]) });
    return stage;
  };
  const times = <One>(count: number, one: One): One[] => Array<One>(count).fill(one);

  test('a device is cut after three mismatches, to the first small set that holds the best effort', () => {
    const seen = { functions: [bestEffort(5)], devices: [device(large)] };
    expect(cutsOf(newStage(), 1, times(5, seen))).toEqual(['', '', '', small.join('+'), small.join('+')]);
    // 15 GiB: [1g, 2g] does not hold them, [3g] does.
    const more = { functions: [bestEffort(16)], devices: [device(small)] };
    expect(cutsOf(newStage(), 1, times(4, more))).toEqual(['', '', '', large.join('+')]);
  });

  test('the count outlasts a change of the target and ends with a match', () => {
    const few = { functions: [bestEffort(5)], devices: [device(large)] };
    const match = { functions: [bestEffort(5)], devices: [device(small)] };
    expect(cutsOf(newStage(), 1, [few, few, match, few, few, few, few])).toEqual([
      '',
      '',
      '',
      '',
      '',
      '',
      small.join('+'),
    ]);
  });

  test('where no small set holds the best effort, or it is out of the thresholds, nothing is cut or counted', () => {
    const much = { functions: [bestEffort(60)], devices: [device(small)] };
    expect(cutsOf(newStage(), 1, times(6, much))).toEqual(times(6, ''));
    // Strict work that a small slice slows down whatever is there.
    const wide = functionOf('strict', 10, { sloMs: 3000, features: { smUtil: 1, dramUtil: 0 }, memoryMiB: 1000 });
    const out = { functions: [bestEffort(5), wide], devices: [device(large)] };
    expect(cutsOf(newStage(), 1, times(6, out))).toEqual(times(6, ''));
  });

  test('decides the same after its state was saved and restored', () => {
    const seen = { functions: [bestEffort(5)], devices: [device(large)] };
    const [one, other] = [newStage(), newStage()];
    expect(cutsOf(one, 1, times(3, seen))).toEqual(['', '', '']);
    other.restore?.(JSON.parse(JSON.stringify(one.saved?.())));
    expect(cutsOf(other, 4, [seen])).toEqual([small.join('+')]);
  });
});
