import { expect, test } from '@jest/globals';
import { ArrivalCounts, countedMinutes, countedSeconds, FunctionLog } from './function-log.js';

const total = (counts: Uint32Array): number => counts.reduce((sum, one) => sum + one, 0);

test('arrivals are counted by second and by minute, the current one last', () => {
  const counts = new ArrivalCounts();
  const at = 1_700_000_040_000;
  for (const ms of [0, 10, 999, 1000, 61_000]) counts.add(at + ms);
  const seconds = counts.bySecond(at + 61_000);
  expect([seconds.length, seconds.at(-1), total(seconds)]).toEqual([countedSeconds, 1, 1]);
  const minutes = counts.byMinute(at + 61_000);
  expect([minutes.length, minutes.at(-1), minutes.at(-2), total(minutes)]).toEqual([countedMinutes, 1, 4, 5]);
});

test('seconds that are over count no more, also where nothing came in between', () => {
  const counts = new ArrivalCounts();
  counts.add(5000);
  expect(total(counts.bySecond(5000 + 59_000))).toBe(1);
  expect(total(counts.bySecond(5000 + 60_000))).toBe(0);
  expect(total(counts.byMinute(5000 + 60_000))).toBe(1);
  expect(total(counts.byMinute(5000 + 1440 * 60_000))).toBe(0);
});

test('an arrival of a clock that was set back counts as of the latest time', () => {
  const counts = new ArrivalCounts();
  counts.add(100_000);
  counts.add(10_000);
  expect(counts.bySecond(100_000).at(-1)).toBe(2);
});

test('of more functions than are kept, the one is forgotten whose last request is the oldest', () => {
  const log = new FunctionLog<number>();
  const work = (number: number) => ({ action: `/a/f${number}`, namespace: 'a' });
  for (let number = 0; number < 1000; number += 1) log.arrived(work(number), number, number);
  log.arrived(work(0), 0, 2000);
  log.arrived(work(1000), 1000, 2001);
  expect(log.of(work(0))?.last).toBe(0);
  expect(log.of(work(1))).toBeUndefined();
  expect([...log.all()]).toHaveLength(1000);
});
