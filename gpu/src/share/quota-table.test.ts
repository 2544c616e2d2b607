import { beforeEach, describe, expect, test } from '@jest/globals';
import { QuotaTable } from './quota-table.js';
import { readQuotaRow } from './quota-row.js';
import { gpuTypeOf } from '../ledger/places.js';
import type { QuotaJob } from './quotas.js';

const type = 'a100-40';
const gpu = { gpuType: type, mode: 'mps' } as const;
const driver = 550;
const none = [Infinity, Infinity];

const job = (name: string, util = 0.5, more: Partial<QuotaJob> = {}): QuotaJob => ({
  function: `/guest/${name}`,
  version: '0.0.1',
  batch: 4,
  soloMs: 10,
  features: { smUtil: util, dramUtil: util, l2Util: util },
  ...more,
});
const without = (one: QuotaJob, field: 'features' | 'soloMs'): QuotaJob => {
  const copy = { ...one };
  delete copy[field];
  return copy;
};
const [a, b] = [job('a', 0.9), job('b', 0.1)];

let table: QuotaTable;
const newTable = (maxRows?: number): QuotaTable =>
  new QuotaTable({ predictorOf: () => ({ slowdown: ({ share }) => 1 / share }), ...(maxRows && { maxRows }) });
beforeEach(() => {
  table = newTable();
});
const record = (set: QuotaJob[], shares: number[], slowdowns: number[], major = driver): string | undefined =>
  table.record(set, gpu, { shares, slowdowns }, major);
const ask = (set: QuotaJob[], budgets = none) => table.shareFor(set, gpu, budgets);

describe('a hit', () => {
  test('is the measured point with the least sum of slowdowns that keeps all budgets, in any order of the set', () => {
    record([a, b], [70, 30], [1.2, 1.5]);
    record([a, b], [50, 50], [1.9, 1.1]);
    record([b, a], [20, 70], [2.5, 1.1]);
    expect(ask([a, b])).toMatchObject({ shares: [0.7, 0.3], source: 'hit', unmet: [] });
    expect(ask([b, a])).toMatchObject({ shares: [0.3, 0.7], source: 'hit', unmet: [] });
    expect(ask([a, b], [Infinity, 12])).toMatchObject({ shares: [0.5, 0.5], source: 'hit' });
    expect(ask([b, a], [Infinity, 11.5])).toMatchObject({ shares: [0.2, 0.7], source: 'hit' });
  });

  test('serves batches of one bucket, and no other version, GPU or mode', () => {
    record([a, b], [70, 30], [1.2, 1.5]);
    const plain = without(a, 'features');
    expect(ask([{ ...plain, batch: 3 }, b]).source).toBe('hit');
    expect(ask([{ ...plain, batch: 5 }, b]).source).toBe('guardrail');
    expect(ask([{ ...plain, version: '0.0.2' }, b]).source).toBe('guardrail');
    expect(table.shareFor([plain, b], { gpuType: 'h100', mode: 'mps' }, none).source).toBe('guardrail');
    expect(table.shareFor([plain, b], { ...gpu, mode: 'mig' }, none).source).toBe('guardrail');
  });

  test('of an instance is of its profile only', () => {
    const instance = (profile: string) => ({ gpuType: gpuTypeOf({ type }, { profile }), mode: 'mig' as const });
    table.record([a, b], instance('3g.20gb'), { shares: [70, 30], slowdowns: [1.2, 1.5] }, driver);
    expect(table.shareFor([a, b], instance('3g.20gb'), none).source).toBe('hit');
    expect(table.shareFor([a, b], instance('2g.10gb'), none).source).toBe('guardrail');
  });

  test('gives the tighter budget of two jobs that are alike the larger share', () => {
    record([a, a], [20, 70], [3, 1.1]);
    expect(ask([a, a], [40, 12])).toMatchObject({ shares: [0.2, 0.7], source: 'hit' });
    expect(ask([a, a], [12, 40])).toMatchObject({ shares: [0.7, 0.2], source: 'hit' });
  });

  test('says what was measured, by job of the set; so do shares that are asked for', () => {
    record([a, b], [70, 30], [1.2, 1.5]);
    record([a, b], [70, 30], [1.3, 1.4]);
    record([a, b], [70, 30], [9, 9]);
    record([a, b], [50, 50], [2, 2]);
    expect(ask([b, a])).toMatchObject({ shares: [0.3, 0.7], slowdowns: [1.5, 1.3] });
    expect(table.slowdownsAt([b, a], gpu, [0.3, 0.7])).toEqual([1.5, 1.3]);
    expect(table.slowdownsAt([b, a], gpu, [0.5, 0.5])).toEqual([2, 2]);
    expect(table.slowdownsAt([b, a], gpu, [0.7, 0.3])).toBeUndefined();
    expect(table.slowdownsAt([b, b], gpu, [0.3, 0.7])).toBeUndefined();
  });

  test('of jobs that are alike is found whichever of them has the fixed share', () => {
    record([a, a], [20, 70], [3, 1.1]);
    const find = (fixed: (number | undefined)[], budgets = none): unknown => {
      const { shares, source, slowdowns } = table.shareFor([a, a], gpu, budgets, fixed);
      return source === 'hit' ? [shares, slowdowns] : source;
    };
    for (const budgets of [none, [40, Infinity], [Infinity, 12]]) {
      expect(find([0.2, undefined], budgets)).toEqual([
        [0.2, 0.7],
        [3, 1.1],
      ]);
    }
    expect(find([0.7, undefined])).toEqual([
      [0.7, 0.2],
      [1.1, 3],
    ]);
    expect(find([0.5, undefined])).toBe('guardrail');
    expect(find([0.2, undefined], [29, Infinity])).toBe('guardrail');
  });

  test('has the least sum of slowdowns weighted by the time that is left', () => {
    record([a, b], [70, 30], [1.2, 1.5]);
    record([a, b], [30, 70], [1.6, 1.2]);
    const find = (leftMs?: number[]): number[] => table.shareFor([a, b], gpu, none, [], leftMs).shares;
    expect(find()).toEqual([0.7, 0.3]);
    expect(find([10, 10])).toEqual([0.7, 0.3]);
    expect(find([10, 20])).toEqual([0.3, 0.7]);
  });

  test('with a budget needs to know the time alone', () => {
    record([a, b], [70, 30], [1.2, 1.5]);
    const unknown = without(a, 'soloMs');
    expect(ask([unknown, b], [100, Infinity])).toMatchObject({ source: 'guardrail', unmet: [0] });
    expect(ask([unknown, b]).source).toBe('hit');
  });

  test('that would break a budget gives way to the guardrail', () => {
    record([a, b], [70, 30], [1.2, 1.5]);
    // The predictor says 1 / share: 50 % of 10 ms are 20 ms, within nine tenths of 25.
    expect(ask([a, b], [Infinity, 14])).toMatchObject({ source: 'guardrail' });
    expect(ask([a, b], [11, 25])).toMatchObject({ source: 'guardrail', unmet: [0] });
    expect(ask([a, b], [11, 25]).shares).toEqual([1, 0.5]);
  });
});

describe('the nearest row', () => {
  test('stands for a set whose jobs are alike, each with the share of the one it is like', () => {
    record([a, b], [70, 30], [1.2, 1.5]);
    record([job('c', 0.5), job('d', 0.5)], [50, 50], [1.5, 1.5]);
    expect(ask([job('e', 0.12), job('f', 0.88)])).toEqual({ shares: [0.3, 0.7], source: 'nearest', unmet: [] });
  });

  test('keeps the budgets of those that it stands for', () => {
    record([a, b], [70, 30], [1.2, 1.5]);
    record([a, b], [50, 50], [1.9, 1.1]);
    expect(ask([job('e', 0.1), job('f', 0.9)], [12, Infinity])).toMatchObject({
      shares: [0.5, 0.5],
      source: 'nearest',
    });
    expect(ask([job('e', 0.1, { soloMs: 20 }), job('f', 0.9)], [12, Infinity]).source).toBe('guardrail');
  });

  test('is none that is far, has more jobs, or was not profiled', () => {
    record([a, a], [50, 50], [1.9, 1.9]);
    record([b, b], [50, 50], [1.1, 1.1]);
    record([a, b, b], [50, 20, 20], [1.9, 1.4, 1.4]);
    expect(ask([job('e', 5), job('f', 5)]).source).toBe('guardrail');
    const unknown = without(job('e'), 'features');
    expect(ask([unknown, b]).source).toBe('guardrail');
  });

  test('is no farther for a figure that both lack, and is for one that only one of them has', () => {
    const [one, other] = [0.2, 0.25].map((smUtil, at) => ({ ...job(`bare${at}`), features: { smUtil } }));
    record([one!, one!], [50, 50], [1, 1]);
    expect(ask([other!, other!]).source).toBe('nearest');
    const told = { ...other!, features: { smUtil: 0.25, dramUtil: 0.9 } };
    expect(ask([told, told]).source).toBe('guardrail');
  });

  test('is the nearest by brute force, among many', () => {
    const utils = Array.from({ length: 40 }, (_, at) => [((at * 7) % 40) / 40, ((at * 13) % 40) / 40] as const);
    for (const [at, [one, other]] of utils.entries()) {
      record([job(`p${at}`, one), job(`q${at}`, other)], [10 + at, 50], [1.1, 1.1]);
    }
    for (const [one, other] of [
      [0.33, 0.71],
      [0.05, 0.05],
      [0.99, 0.4],
    ] as const) {
      const distances = utils.map(([x, y]) =>
        Math.min(Math.abs(one - x) + Math.abs(other - y), Math.abs(one - y) + Math.abs(other - x)),
      );
      const nearest = distances.indexOf(Math.min(...distances));
      expect(ask([job('x', one), job('y', other)]).shares).toContain((10 + nearest) / 100);
    }
  });
});

describe('what is recorded', () => {
  test.each([
    [[70, 30], [1.2, NaN], 'a slowdown of NaN'],
    [[70, 30], [1.2, Infinity], 'a slowdown of Infinity'],
    [[70, 30], [1.2, -1], 'a slowdown of -1'],
    [[70, 30], [0.01, 1], 'a slowdown of 0.01'],
    [[70, 0], [1, 1], 'a share of 0 %'],
    [[70, NaN], [1, 1], 'a share of NaN %'],
    [[70], [1, 1], '1 shares and 2 slowdowns for 2 jobs'],
  ])('%j with slowdowns %j is refused', (shares, slowdowns, reason) => {
    expect(record([a, b], shares, slowdowns)).toBe(reason);
    expect(table.rows()).toEqual([]);
  });

  test('of repeated measurements the median counts, so that one outlier changes nothing', () => {
    for (const slowdown of [1.2, 1.25, 900, 1.22]) expect(record([a, b], [70, 30], [slowdown, 1.5])).toBeUndefined();
    expect(table.pointsOf([b, a], gpu)).toEqual([{ shares: [30, 70], slowdowns: [1.5, 1.22] }]);
  });

  test('is bounded: points of a row, and rows, of which the one that was not used for longest goes', () => {
    table = newTable(3);
    for (let point = 0; point < 100; point += 1) record([a, b], [1 + point, 50], [1 + point, 1]);
    expect(table.rows()[0]?.points).toHaveLength(64);
    expect(ask([a, b]).shares).toEqual([0.01, 0.5]);
    for (const name of ['c', 'd']) record([job(name, 0.5)], [50], [1.2]);
    ask([a, b]);
    record([job('e', 0.5)], [50], [1.2]);
    expect(table.rows().map((row) => row.jobs.map((one) => one.function))).toEqual([
      ['/guest/d'],
      ['/guest/a', '/guest/b'],
      ['/guest/e'],
    ]);
  });

  test('of a search that has ended is noted', () => {
    expect(table.wantsSearch([a, b], gpu)).toBe(true);
    record([a, b], [70, 30], [1.2, 1.5]);
    table.markSearched([b, a], gpu);
    expect(table.wantsSearch([a, b], gpu)).toBe(false);
  });
});

describe('a row expires', () => {
  test("with the driver's major version, of its type of GPU only; old nodes' measurements are refused", () => {
    record([a, b], [70, 30], [1.2, 1.5]);
    table.record([a, b], { gpuType: 'h100', mode: 'mps' }, { shares: [70, 30], slowdowns: [1.2, 1.5] }, driver);
    expect(table.sawDriver(type, 570)).toBe(true);
    expect(table.rows().map((row) => row.gpuType)).toEqual(['h100']);
    expect(record([a, b], [70, 30], [1.2, 1.5], 550)).toBe('measured with driver 550, which has been replaced');
    expect(record([a, b], [70, 30], [1.2, 1.5], 570)).toBeUndefined();
  });

  test('with the version of any of its functions, and stands for no set any more', () => {
    record([a, b], [70, 30], [1.2, 1.5]);
    table.sawVersion('/guest/b', '0.0.1');
    expect(table.rows()).toHaveLength(1);
    table.sawVersion('/guest/b', '0.0.2');
    expect(table.rows()).toEqual([]);
    expect(ask([job('e', 0.9), job('f', 0.1)]).source).toBe('guardrail');
  });
});

describe('stored', () => {
  const stored = (): unknown[] => {
    record([a, b], [70, 30], [1.2, 1.5]);
    record([a, a], [50, 50], [1.9, 1.8]);
    table.markSearched([a, a], gpu);
    return table.rows().map((row) => JSON.parse(JSON.stringify(row)) as unknown);
  };

  test('it is the same table again', () => {
    const again = newTable();
    for (const row of stored()) again.restore(readQuotaRow(row));
    expect(again.rows()).toEqual(table.rows());
    expect(again.shareFor([b, a], gpu, none)).toEqual(ask([b, a]));
    expect(again.shareFor([job('e', 0.12), job('f', 0.88)], gpu, none).source).toBe('nearest');
    expect(again.wantsSearch([a, a], gpu)).toBe(false);
  });

  test('rows of a driver that was replaced are not taken, and are to be forgotten', () => {
    const changes: [string, boolean][] = [];
    const onChange = (key: string, row: unknown): void => void changes.push([key, row !== undefined]);
    const again = new QuotaTable({ predictorOf: () => ({ slowdown: () => 1 }), onChange });
    again.sawDriver(type, 570);
    for (const row of stored()) again.restore(readQuotaRow(row));
    expect(again.rows()).toEqual([]);
    expect(changes).toEqual([
      ['a100-40/mps /guest/a@0.0.1#4 /guest/b@0.0.1#4', false],
      ['a100-40/mps /guest/a@0.0.1#4 /guest/a@0.0.1#4', false],
    ]);
  });

  test('what is no row, and numbers that would spread, are refused', () => {
    stored();
    const row = { ...table.rows()[0]!, points: [{ shares: [70, 30], samples: [[1, 1]], slowdowns: [1, -1] }] };
    for (const bad of [row, {}, null, []]) expect(() => readQuotaRow(bad)).toThrow('this is no row of a quota table');
  });
});

test('every change is told, with the key by which a row can be forgotten', () => {
  const changes: [string, boolean | undefined][] = [];
  const onChange = (key: string, row?: { searched: boolean }): void => void changes.push([key, row?.searched]);
  const told = new QuotaTable({ predictorOf: () => ({ slowdown: () => 1 }), onChange });
  told.record([a, b], gpu, { shares: [70, 30], slowdowns: [1.2, 1.5] }, driver);
  told.markSearched([b, a], gpu);
  const key = 'a100-40/mps /guest/a@0.0.1#4 /guest/b@0.0.1#4';
  expect([told.forget(key), told.forget(key)]).toEqual([true, false]);
  expect(changes).toEqual([
    [key, false],
    [key, true],
    [key, undefined],
  ]);
});

describe('a fixed share', () => {
  const keep = (set: QuotaJob[], fixed: (number | undefined)[], budgets = none) =>
    table.shareFor(set, gpu, budgets, fixed);

  test('leaves of what was measured the points with it', () => {
    record([a, b], [70, 30], [1.2, 1.5]);
    record([a, b], [50, 50], [1.9, 1.1]);
    expect(keep([b, a], [undefined, 0.5])).toMatchObject({ shares: [0.5, 0.5], source: 'hit' });
    expect(keep([job('e', 0.12), job('f', 0.88)], [0.5])).toMatchObject({ shares: [0.5, 0.5], source: 'nearest' });
    expect(keep([a, b], [0.2])).toMatchObject({ shares: [0.2, 0.5], source: 'guardrail' });
  });

  test('is as it is for the guardrail, which gives the others more', () => {
    const budgets = [12, 12];
    expect(keep([a, b], [0.3], budgets)).toEqual({ shares: [0.3, 1], source: 'guardrail', unmet: [0] });
  });
});
