import { expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { Pace } from './pace.js';

/** A clock that stands, and goes on by what is waited for. */
function standingClock(): { clock: Clock; waits: number[]; pass(ms: number): void } {
  let nowMs = 1000;
  const waits: number[] = [];
  const clock: Clock = {
    ...systemClock,
    monotonicMs: () => nowMs,
    setTimer: (durationMs, callback) => {
      waits.push(durationMs);
      nowMs += durationMs;
      queueMicrotask(callback);
      return { cancel: () => undefined };
    },
  };
  return { clock, waits, pass: (ms) => (nowMs += ms) };
}

test('a sender of one message after the other waits for nothing', async () => {
  const { clock, waits, pass } = standingClock();
  const pace = new Pace(clock);
  for (let request = 0; request < 20; request++) {
    await pace.turn();
    pace.carried(1);
    pass(1);
  }
  expect(waits).toEqual([]);
});

test('a request that carries several has the next begin later, until one after the other carries one again', async () => {
  const { clock, waits, pass } = standingClock();
  const pace = new Pace(clock);
  await pace.turn();
  pace.carried(2);
  pass(2);
  await pace.turn();
  expect(waits).toEqual([3]);

  for (let request = 0; request < 30; request++) {
    pace.carried(1);
    await pace.turn();
  }
  const afterLoad = waits.length;
  expect(afterLoad).toBeLessThan(30);
  pace.carried(1);
  await pace.turn();
  expect(waits).toHaveLength(afterLoad);
});

test('under load nothing is waited for that has passed already', async () => {
  const { clock, waits, pass } = standingClock();
  const pace = new Pace(clock);
  for (let request = 0; request < 5; request++) {
    await pace.turn();
    pace.carried(10);
    pass(7);
  }
  expect(waits).toEqual([]);
});
