import { expect, test } from '@jest/globals';
import { lowerBounds } from './bounds.js';

const job = (arrivedAt: number, lengthMs: number, workMs = lengthMs) => ({ arrivedAt, lengthMs, workMs });

test('one GPU serves the shortest remaining work first', () => {
  // The job of 2 interrupts that of 10 at 1 and ends at 3; the long one ends at 12.
  expect(lowerBounds([job(0, 10), job(1, 2)], 1)).toEqual({ makespanMs: 12, jctMs: (12 + 2) / 2 });
});

test('several GPUs are one fast machine, but no job ends before its solo time', () => {
  const four = [1, 2, 3, 4].map(() => job(0, 8, 4));
  expect(lowerBounds(four, 1)).toEqual({ makespanMs: 16, jctMs: (4 + 8 + 12 + 16) / 4 });
  expect(lowerBounds(four, 4)).toEqual({ makespanMs: 8, jctMs: 8 });
});

test('the machine idles until the next arrival', () => {
  expect(lowerBounds([job(5, 1), job(100, 2)], 1)).toEqual({ makespanMs: 97, jctMs: 1.5 });
  expect(lowerBounds([], 2)).toEqual({ makespanMs: 0, jctMs: 0 });
});
