import { describe, expect, test } from '@jest/globals';
import { shareClasses } from '@gpuwhisk/common/gpu';
import { betterFill, fillOfActivity, fillOfLaunches, fillOfTimes } from './fill.js';
import type { AtShare, Fill, FillSource } from './fill.js';

/** A function that fills `fill` of the GPU: its time at each share, and what it launches there. */
const timesOf = (fill: number, shares: readonly number[] = shareClasses): AtShare[] =>
  shares.map((share) => ({ share, value: 100 * Math.max(1, fill / (share / 100)) }));
const ratesOf = (fill: number, shares: readonly number[]): AtShare[] =>
  timesOf(fill, shares).map(({ share, value }) => ({ share, value: 1e5 / value }));

describe('by times at share classes', () => {
  test.each([
    [0.08, 0.1],
    [0.1, 0.1],
    [0.12, 0.2],
    [0.45, 0.5],
    [1, 1],
  ])('what fills %d of a GPU fills class %d', (fill, part) => {
    expect(fillOfTimes(timesOf(fill), 'sample')).toEqual({ part, source: 'sample' });
  });

  test('a time within 2 % of the one at 100 % is equal to it', () => {
    const at = (value: number): AtShare[] => [...timesOf(0.4).filter(({ share }) => share > 30), { share: 30, value }];
    expect(fillOfTimes(at(101.9), 'runs')?.part).toBe(0.3);
    expect(fillOfTimes(at(102.1), 'runs')?.part).toBe(0.5);
  });

  test('a smaller class counts only if all above it are as fast', () => {
    const times = timesOf(0.1).map((one) => (one.share === 50 ? { ...one, value: 120 } : one));
    expect(fillOfTimes(times, 'runs')?.part).toBe(0.7);
  });

  test.each([
    ['there is none', []],
    ['there is none at 100 %', timesOf(0.1, [10, 50])],
    ['it is known at 100 % alone', timesOf(0.1, [100])],
    ['only classes far below are known', timesOf(0.5, [10, 100])],
  ])('it is not known where %s', (_, times) => {
    expect(fillOfTimes(times, 'runs')).toBeUndefined();
  });
});

describe('by launches', () => {
  test.each([
    [0.1, [100, 10], 0.1],
    [0.3, [100, 10], 0.3],
    [0.45, [100, 50, 20], 0.45],
    [0.05, [100, 10], 0.1],
    [1, [100, 50], 1],
  ])('what fills %d of a GPU is measured at %j as %d', (fill, shares, part) => {
    const found = fillOfLaunches(ratesOf(fill, shares));
    expect(found?.source).toBe('launches');
    expect(found?.part).toBeCloseTo(part, 12);
  });

  test('it is not known without both the whole GPU and less', () => {
    expect([[], ratesOf(0.1, [100]), ratesOf(0.1, [50, 10])].map((rates) => fillOfLaunches(rates))).toEqual([
      ...[undefined, undefined, undefined],
    ]);
  });
});

test('by activity of the SMs, unless the function uses up what it may', () => {
  expect(fillOfActivity(0.1, 1)).toEqual({ part: 0.1, source: 'gpm' });
  expect(fillOfActivity(1, 1)).toEqual({ part: 1, source: 'gpm' });
  expect(fillOfActivity(0.1, 0.5)).toEqual({ part: 0.1, source: 'gpm' });
  const untold = [
    fillOfActivity(0.48, 0.5),
    fillOfActivity(0, 1),
    fillOfActivity(undefined, 1),
    fillOfActivity(NaN, 1),
  ];
  expect(untold).toEqual([undefined, undefined, undefined, undefined]);
});

describe('of two fills', () => {
  const fill = (source: FillSource, part = 0.5): Fill => ({ source, part });
  const sources: FillSource[] = ['sample', 'runs', 'launches', 'gpm'];

  test.each(sources.flatMap((better, at) => sources.slice(at + 1).map((worse) => [better, worse] as const)))(
    'one by %s takes the place of one by %s, and does not give way to it',
    (better, worse) => {
      expect(betterFill(fill(worse), fill(better))).toEqual(fill(better));
      expect(betterFill(fill(better), fill(worse))).toEqual(fill(better));
    },
  );

  test('of one source the later counts, and of activity the greater', () => {
    for (const source of ['sample', 'runs', 'launches'] as const) {
      expect(betterFill(fill(source, 0.5), fill(source, 0.2))).toEqual(fill(source, 0.2));
    }
    expect(betterFill(fill('gpm', 0.5), fill('gpm', 0.2))).toEqual(fill('gpm', 0.5));
    expect(betterFill(fill('gpm', 0.2), fill('gpm', 0.5))).toEqual(fill('gpm', 0.5));
    expect([betterFill(undefined, fill('gpm')), betterFill(fill('gpm'), undefined)]).toEqual([
      fill('gpm'),
      fill('gpm'),
    ]);
  });
});
