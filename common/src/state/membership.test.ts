import { expect, test } from '@jest/globals';
import { createLogger } from '../logging.js';
import { sleep, systemClock } from '../system/clock.js';
import type { Clock } from '../system/clock.js';
import { assignInstanceId, InstanceIdError } from './instance-ids.js';
import { embeddedState } from './embedded-state.js';
import { Membership } from './membership.js';

/** A clock whose timers fire when it is moved. */
function movedClock(): Clock & { move(durationMs: number): Promise<void> } {
  let nowMs = 0;
  const timers: { atMs: number; run: () => void }[] = [];
  const setTimer = (delayMs: number, run: () => void): { cancel(): void } => {
    const timer = { atMs: nowMs + delayMs, run };
    timers.push(timer);
    return { cancel: () => void timers.splice(timers.indexOf(timer), timers.includes(timer) ? 1 : 0) };
  };
  return {
    ...systemClock,
    now: () => nowMs,
    monotonicMs: () => nowMs,
    setTimer,
    setBackgroundTimer: setTimer,
    async move(durationMs) {
      for (const untilMs = nowMs + durationMs; nowMs < untilMs; nowMs += 100) {
        for (const timer of timers.filter(({ atMs }) => atMs <= nowMs)) {
          timers.splice(timers.indexOf(timer), 1);
          timer.run();
        }
        await sleep(systemClock, 0);
      }
    },
  };
}

test('members know each other until one goes, or is silent', async () => {
  const clock = movedClock();
  const state = embeddedState(clock);
  const logger = createLogger({ level: 'silent' });
  const member = (name: string): Membership =>
    new Membership({ state, clock, logger, table: 'controllers', name, value: name });
  const [one, two, three] = [member('one'), member('two'), member('three')];
  for (const each of [one, two, three]) await each?.open();
  await clock.move(3000);
  expect([...(one?.members().keys() ?? [])].sort()).toEqual(['one', 'three', 'two']);
  await two?.close();
  await clock.move(3000);
  expect([...(one?.members().keys() ?? [])].sort()).toEqual(['one', 'three']);
  // One that was killed says nothing.
  await state.setRow('controllers', 'killed', null, 10_000);
  await clock.move(3000);
  expect(one?.members().size).toBe(3);
  await clock.move(12_000);
  expect([...(one?.members().keys() ?? [])].sort()).toEqual(['one', 'three']);
});

test('each name has a number of its own, and keeps it', async () => {
  const state = embeddedState(systemClock);
  const numberOf = (name: string, hadBefore?: number): Promise<number> =>
    assignInstanceId({
      state,
      clock: systemClock,
      sort: 'invokers',
      name,
      ...(hadBefore !== undefined && { hadBefore }),
    });
  expect(await Promise.all([numberOf('a'), numberOf('b')]).then((both) => both.sort())).toEqual([0, 1]);
  const first = await numberOf('a');
  expect(await numberOf('a')).toBe(first);
  expect(await numberOf('c')).toBe(2);
  // The cluster forgot; those who come back have what they had.
  await state.deleteRow('instances invokers', 'a');
  await state.deleteRow('instances invokers', 'c');
  expect(await numberOf('c', 2)).toBe(2);
  expect(await numberOf('d')).toBe(first);
  await expect(numberOf('a', first)).rejects.toBeInstanceOf(InstanceIdError);
});
