import { expect, test } from '@jest/globals';
import { dueMs, inTurn, isOverdue } from './earliest-deadline.js';

const names = (waiting: { name: string }[]): string[] => waiting.map(({ name }) => name);

test('deadlines decide, best effort has 30 s, and the first to come goes first of those alike', () => {
  const waiting = [
    { name: 'best effort', arrivedMs: 0 },
    { name: 'strict and late', arrivedMs: 20_000, sloMs: 11_000 },
    { name: 'strict', arrivedMs: 25_000, sloMs: 100 },
    { name: 'as due as the strict one, and earlier', arrivedMs: 24_000, sloMs: 1100 },
  ];
  expect(names(inTurn(waiting, 26_000))).toEqual([
    'as due as the strict one, and earlier',
    'strict',
    'best effort',
    'strict and late',
  ]);
  expect(dueMs({ arrivedMs: 5 })).toBe(30_005);
});

test('a task that has waited for twice its SLO, and 30 s at least, is not overtaken', () => {
  expect(isOverdue({ arrivedMs: 0, sloMs: 100 }, 29_999)).toBe(false);
  expect(isOverdue({ arrivedMs: 0, sloMs: 100 }, 30_000)).toBe(true);
  expect(isOverdue({ arrivedMs: 0, sloMs: 20_000 }, 39_999)).toBe(false);
  expect(isOverdue({ arrivedMs: 0, sloMs: 20_000 }, 40_000)).toBe(true);
  const waiting = [
    { name: 'urgent', arrivedMs: 59_000, sloMs: 1 },
    { name: 'second to come', arrivedMs: 1000 },
    { name: 'first to come', arrivedMs: 0, sloMs: 30_000 },
  ];
  expect(names(inTurn(waiting, 60_000))).toEqual(['first to come', 'second to come', 'urgent']);
});
