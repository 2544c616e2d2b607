import { describe, expect, test } from '@jest/globals';
import type { DeviceMode } from '@gpuwhisk/common/gpu';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { taskOf } from '../../testing/fixtures.js';
import { usableMiB } from '../../ledger/places.js';
import type { DeviceState, FunctionState, Task, View } from '../../view/view.js';
import { candidateSetsOf } from './candidate-sets.js';
import type { Geometry } from '../../stages/geometry/geometry.js';
import { geometryFault, migProfiles } from '../../stages/geometry/mig-profiles.js';
import { proteanGeometry, proteanGeometryDefaults } from './geometry.js';
import { SliceSlowdowns } from './slowdowns.js';
import { byFigures, learnedSlices, thresholds } from './slice-model.js';
import { ledgerWith } from '../../testing/views.js';

const type = 'a100-40';
const sets = candidateSetsOf(type)!;
const [large, small] = [
  ['4g.20gb', '3g.20gb'],
  ['4g.20gb', '2g.10gb', '1g.5gb'],
];

/** A function with the same number of requests in each second, whose runs take a second each. */
function functionOf(name: string, perSecond: number, changes: Partial<Task>): FunctionState {
  const task = taskOf(name, { function: `/a/${name}`, memoryMiB: 1000, ...changes });
  const of = (length: number) => (): Uint32Array => new Uint32Array(length).fill(perSecond);
  return { task, arrivals: { bySecond: of(60), byMinute: of(1440) }, runMs: 1000 };
}
const figures = (smUtil: number, dramUtil: number): Partial<Task> => ({ features: { smUtil, dramUtil } });
const strict = functionOf('strict', 10, { sloMs: 300, ...figures(0.2, 0.3) });
/** Best effort of which `batches` are there at once. */
const bestEffort = (batches: number, changes: Partial<Task> = {}): FunctionState =>
  functionOf('rest', batches, { ...figures(0.1, 0.2), ...changes });

function device(id: string, profiles: readonly string[] = [], changes: Partial<DeviceState> = {}): DeviceState {
  const slices = profiles.map((profile, at) => ({ id: `${id}:${at}`, profile }));
  const mode = profiles.length > 0 ? ('mig' as const) : ('mps' as const);
  return { id, node: 'n', type, mode, geometries: [], places: slices.length > 0 ? slices : [{ id }], ...changes };
}

const windowMs = proteanGeometryDefaults.recutWindowS * 1000;
const start = 1_000_000_000;

/** A stage that has been asked first at `start`, and its cuts at the end of window `window` (from 1). */
function opened(settings: Partial<typeof proteanGeometryDefaults> = {}): {
  stage: Geometry;
  at(window: number, seen: Pick<View, 'functions' | 'devices'>): string[];
} {
  const stage = proteanGeometry({ ...proteanGeometryDefaults, ...settings });
  stage.cuts({ at: start, ledger: ledgerWith([]) });
  return {
    stage,
    at: (window, seen) =>
      stage
        .cuts({ at: start + window * windowMs, ledger: ledgerWith([]), ...seen })
        .map(({ device: id, profiles }) => `${id} ${profiles.join('+')}`),
  };
}

test('deficiency is that of times alone, and of figures where no time is known', () => {
  const slowdowns = new SliceSlowdowns();
  const model = learnedSlices(slowdowns);
  const { task } = strict;
  const kind = { type, slice: sets.small[0]![0]!, whole: sets.whole };
  const unseen = { ...task, soloMs: undefined } as unknown as Task;
  expect(model.deficiency(unseen, kind)).toBe(byFigures.deficiency(unseen, kind));
  const ran = (gpuType: string, mode: DeviceMode, ranMs: number): void =>
    slowdowns.ran({ task, gpu: { gpuType, mode }, ranMs, beside: [] });
  ran(type, 'mps', 10);
  ran(`${type}:${kind.slice.name}`, 'mig', 45);
  expect(model.deficiency(task, kind)).toBeCloseTo(4.5);
  expect(model.bandwidth(task, kind)).toBe(byFigures.bandwidth(task, kind));
});

describe('candidate sets', () => {
  test.each(Object.keys(migProfiles))('%s: every geometry of the stage is legal', (one) => {
    const found = candidateSetsOf(one)!;
    for (const set of [...found.small.map((few) => [found.large, ...few]), found.otherwise]) {
      expect(
        geometryFault(
          one,
          set.map(({ name }) => name),
        ),
      ).toBeUndefined();
    }
  });

  test('a device that cannot be cut has none', () => {
    expect(candidateSetsOf('rtx3090')).toBeUndefined();
  });
});

describe('thresholds by equation 2', () => {
  // On 2g the strict task has RDF = 0.3 / (2/8) = 1.2 and asks for all of the bandwidth, on 3g RDF = 1 and 0.6 of it. A
  // batch asks for 0.4 of a 3g, so that strict work takes max(1, 0.6 + 0.4 n) there; four batches fit the 1g, where they
  // do not meet it, and each further one adds 0.8 of the 2g's bandwidth: 1.2 (1 + 0.8 m).
  const mix = {
    ...{ type, sets, batchMiB: 1000 },
    bestEffort: [{ task: bestEffort(1).task, weight: 1 }],
    strict: [{ task: strict.task, weight: 1 }],
  };

  test('small slices suit from the number on at which a shared 3g is slower, until 2g is', () => {
    expect(thresholds(byFigures, mix)).toEqual({ low: 2, high: 5 });
  });

  test('work without interference, or too large for small slices, has none', () => {
    const quiet = { ...mix, bestEffort: [{ task: bestEffort(1, figures(0.1, 0)).task, weight: 1 }] };
    expect(thresholds(byFigures, quiet)).toBeUndefined();
    const big = { ...strict.task, memoryMiB: 15_000 };
    expect(thresholds(byFigures, { ...mix, strict: [{ task: big, weight: 1 }] })).toBeUndefined();
    expect(thresholds(byFigures, { ...mix, strict: [] })).toBeUndefined();
  });
});

describe('the target', () => {
  const targetFor = (...functions: FunctionState[]): readonly string[] | undefined => {
    const { stage, at } = opened();
    at(1, { functions, devices: [device('g')] });
    return stage.report!().targets[0]!.profiles;
  };

  test('follows the expected number of best-effort batches: between the thresholds small slices, else 4g and 3g', () => {
    const byCount = [0, 1, 2, 5, 6, 14].map((count) => targetFor(strict, bestEffort(count)));
    expect(byCount).toEqual([large, large, small, small, large, large]);
  });

  test('memory decides between sets where there is no strict work', () => {
    expect(targetFor(bestEffort(3))).toEqual(small);
    expect(targetFor(bestEffort(15))).toEqual(large);
    expect(targetFor(bestEffort(1, { memoryMiB: 9500 }))).toEqual(large);
    expect(targetFor(bestEffort(30))).toEqual(large);
  });

  test('none is wanted while no requests come', () => {
    expect(targetFor()).toBeUndefined();
  });

  test('is legal and holds the best effort, or is 4g and 3g, whatever comes', () => {
    const random = seededRandom(7);
    for (let round = 0; round < 300; round += 1) {
      const some = (most: number): number => Math.floor(randomFraction(random) * most);
      const functions = Array.from({ length: 1 + some(4) }, (_, at) =>
        functionOf(`f${at}`, some(8), {
          ...figures(randomFraction(random), randomFraction(random)),
          memoryMiB: [0, NaN, 300, 4000, 12_000, 30_000][some(6)]!,
          ...(some(2) === 0 && { sloMs: 100 }),
        }),
      );
      const { stage, at } = opened();
      at(1, { functions, devices: [device('g'), device('h', large)] });
      const { profiles, memoryMiB } = stage.report!().targets[0]!;
      if (profiles === undefined || profiles.join() === large.join()) continue;
      expect(geometryFault(type, profiles)).toBeUndefined();
      const [, ...rest] = profiles.map((name) => migProfiles[type].find((one) => one.name === name)!);
      expect(rest.reduce((sum, slice) => sum + usableMiB(slice), 0)).toBeGreaterThanOrEqual(memoryMiB);
    }
  });
});

describe('the loop', () => {
  const seen = { functions: [strict, bestEffort(3)], devices: [device('g')] };

  test('cuts at the third window in a row that differs from the same target, not within one', () => {
    const { stage, at } = opened();
    expect([at(1, seen), at(2, seen), at(2.5, seen), at(3, seen)]).toEqual([[], [], [], ['g 4g.20gb+2g.10gb+1g.5gb']]);
    const [cut] = stage.report!().cuts;
    expect(cut).toMatchObject({ device: 'g', profiles: small });
    expect(cut!.reason).toContain('3 best-effort batches and 3000 MiB');
    expect([at(4, seen), at(5, seen)]).toEqual([[], []]);
  });

  test('begins to count again after a match, and after another target', () => {
    const { at } = opened();
    const others = { ...seen, devices: [device('g', small)] };
    expect([at(1, seen), at(2, seen), at(3, others), at(4, seen), at(5, seen)].flat()).toEqual([]);
    expect(at(6, seen)).toHaveLength(1);
    const changing = opened({ recutWeight: 1 });
    const more = { ...seen, functions: [strict, bestEffort(8)] };
    expect([1, 2, 3, 4, 5].flatMap((window) => changing.at(window, window < 3 ? seen : more))).toEqual([
      'g 4g.20gb+3g.20gb',
    ]);
  });

  test('averages requests with weight 0.3', () => {
    const { stage, at } = opened();
    const expected = (window: number, batches: number): number => {
      at(window, { functions: [bestEffort(batches)], devices: [device('g')] });
      return stage.report!().targets[0]!.bestEffort;
    };
    // 10; 10 + 0.3 (0 − 10) = 7; 7 + 0.3 (20 − 7) = 10.9.
    expect([expected(1, 10), expected(2, 0), expected(3, 20)]).toEqual([10, 7, 11]);
  });

  test.each([
    [1, 1],
    [3, 1],
    [7, 2],
    [10, 3],
  ])('of %i devices %i are cut at once, those that are being cut included, where least runs first', (count, most) => {
    const { at } = opened();
    const devices = Array.from({ length: count }, (_, index) => device(`g${index}`));
    const busy = { ...seen, functions: [strict, bestEffort(3 * count)] };
    for (const window of [1, 2]) at(window, { ...busy, devices });
    const first = at(3, { ...busy, devices });
    expect(first).toHaveLength(most);
    const underWay = devices.map((one) =>
      first.some((cut) => cut.startsWith(`${one.id} `)) ? { ...one, cut: { profiles: small } } : one,
    );
    expect(at(4, { ...busy, devices: underWay })).toEqual([]);
    const done = devices.map((one) =>
      first.some((cut) => cut.startsWith(`${one.id} `)) ? device(one.id, small) : one,
    );
    expect(at(5, { ...busy, devices: done })).toHaveLength(Math.min(most, count - most));
  });

  test('leaves devices that may not be cut, that refused, or that a function needs whole, and says why', () => {
    const leftOf = (one: DeviceState, functions = seen.functions): [number, string | undefined] => {
      const { stage, at } = opened();
      const cuts = [1, 2, 3, 4].flatMap((window) => at(window, { functions, devices: [one] }));
      return [cuts.length, stage.report!().devices[0]?.left];
    };
    const off = 'gpu.manage.mig is off on its node';
    expect(leftOf(device('g', [], { mayNotCut: off }))).toEqual([0, off]);
    expect(leftOf(device('g', [], { cut: { profiles: small, refused: 'No room.' } }))).toEqual([0, 'No room.']);
    expect(leftOf(device('g', [], { cut: { profiles: large, refused: 'No room.' } }))[0]).toBe(1);
    const big = [...seen.functions, functionOf('big', 1, { memoryMiB: 30_000 })];
    expect(leftOf(device('g'), big)).toEqual([0, "'/a/big' needs 30000 MiB, more than 4g.20gb gives"]);
    const gang = [...seen.functions, functionOf('gang', 1, { gpus: 2 })];
    expect(leftOf(device('g'), gang)).toEqual([0, "'/a/gang' needs 2 whole devices"]);
    expect(leftOf(device('g', [], { type: 'rtx3090' }))).toEqual([0, undefined]);
  });

  test('counts no window over a jump of the clock, and counts begin again', () => {
    const { at } = opened();
    expect([at(1, seen), at(2, seen)].flat()).toEqual([]);
    // Set back by an hour: the next window ends 20 s after that.
    expect([at(-180, seen), at(-179, seen), at(-178, seen)].flat()).toEqual([]);
    // Set forward by a day: one long window is none.
    expect([at(4320, seen), at(4321, seen), at(4322, seen)].flat()).toEqual([]);
    expect(at(4323, seen)).toHaveLength(1);
  });

  test('goes on where its saved state ends', () => {
    const { stage, at } = opened();
    for (const window of [1, 2]) at(window, seen);
    const other = opened();
    other.stage.restore!(JSON.parse(JSON.stringify(stage.saved!())));
    expect(other.at(3, seen)).toEqual(at(3, seen));
  });

  test.each([{ recutWindowS: 0 }, { recutWindowS: 60 }, { recutWeight: 0 }, { recutAfter: 0.5 }, { recutPart: 2 }])(
    'refuses %j',
    (settings) => {
      expect(() => opened(settings)).toThrow(RangeError);
    },
  );
});
