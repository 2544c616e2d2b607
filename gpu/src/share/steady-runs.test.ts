import { expect, test } from '@jest/globals';
import { isTelling, steadyRuns, typicalMs } from './set-observations.js';
import type { RunInterval } from './set-observations.js';

/** Runs one after the other from `fromMs` on, with gaps. */
const inRow = (fromMs: number, count: number, tookMs: number, gapMs = 0): RunInterval[] =>
  Array.from({ length: count }, (_, at) => {
    const startMs = fromMs + at * (tookMs + gapMs);
    return { startMs, endMs: startMs + tookMs };
  });

test('runs count that had all others beside them, gaps between theirs aside', () => {
  const [long, short] = [inRow(0, 3, 1000), inRow(500, 20, 95, 5)];
  const steady = steadyRuns([long, short]);
  // The first was alone for half of its time.
  expect(steady[0]).toEqual(long.slice(1, 2));
  expect(steady[1]).toEqual(short);
});

test('runs between which others are gone for long do not count, nor those that took no time', () => {
  expect(steadyRuns([inRow(0, 2, 1000), inRow(0, 20, 10, 90)])[0]).toEqual([]);
  expect(steadyRuns([inRow(0, 5, 0), inRow(0, 1, 100)])[0]).toEqual([]);
});

test('of three members each needs both others', () => {
  const all = inRow(0, 4, 100);
  expect(steadyRuns([all, all, inRow(100, 2, 100)]).map((runs) => runs.length)).toEqual([2, 2, 2]);
});

test('three runs tell enough if they take long enough, ten in any case', () => {
  expect([isTelling(inRow(0, 2, 500)), isTelling(inRow(0, 3, 49)), isTelling(inRow(0, 3, 50))]).toEqual([
    ...[false, false, true],
  ]);
  expect([isTelling(inRow(0, 9, 1)), isTelling(inRow(0, 10, 1))]).toEqual([false, true]);
});

test('what is typical leaves a disturbed run out, and is finer than the clock', () => {
  expect(typicalMs([...inRow(0, 3, 10), ...inRow(0, 1, 500)])).toBe(10);
  expect(typicalMs([...inRow(0, 4, 10), ...inRow(0, 4, 11)])).toBe(10.5);
  expect(() => typicalMs([])).toThrow(RangeError);
});
