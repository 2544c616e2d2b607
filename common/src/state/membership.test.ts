import { describe, expect, test } from '@jest/globals';
import { createLogger } from '../logging.js';
import { seededRandom } from '../system/random.js';
import { sleep, systemClock } from '../system/clock.js';
import type { Clock } from '../system/clock.js';
import type { ClusterState } from './cluster-state.js';
import { holdName } from './held-name.js';
import type { HeldName } from './held-name.js';
import { assignInstanceId, InstanceIdError } from './instance-ids.js';
import { embeddedState } from './embedded-state.js';
import { Membership } from './membership.js';
import { simulatedState } from './simulated-state.js';

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

describe('the name of a process', () => {
  const lease = 'name invokers a';

  function cluster() {
    const clock = movedClock();
    const state = embeddedState(clock);
    // One process whose way to the state can be cut.
    const cut = simulatedState(state, { clock, random: seededRandom(1) });
    const lost: string[] = [];
    const logger = createLogger({ level: 'silent' });
    const hold = (holder: string, sort = 'invokers', where: ClusterState = state): Promise<HeldName> =>
      holdName({ state: where, clock, logger, sort, name: 'a', holder, onLost: () => lost.push(holder) });
    const passing = async <Result>(work: Promise<Result>): Promise<Result> => {
      let isOver = false;
      void work.finally(() => (isOver = true));
      while (!isOver) await clock.move(100);
      return work;
    };
    return { clock, state, cut, lost, hold, passing };
  }

  test('is refused to another one for as long as the first is alive', async () => {
    const { clock, lost, hold } = cluster();
    const first = await hold('one');
    await clock.move(60_000);
    for (let tries = 0; tries < 2; tries++) {
      const refused = hold('two').catch((error: unknown) => error);
      await clock.move(6000);
      expect(await refused).toMatchObject({
        name: 'InstanceIdError',
        message: "'a' is the name of another process of the invokers, which runs",
      });
    }
    await (await hold('two', 'controllers')).close();
    await first.close();
    await (await hold('two')).close();
    expect(lost).toEqual([]);
  });

  test('is there for its next life at once, for another process when the lease of the dead one is over', async () => {
    const { clock, state, hold } = cluster();
    await state.acquireLease(lease, 'killed', 3000);
    const next = await hold('killed');
    const taken: string[] = [];
    const others = hold('another').then(() => taken.push('another'));
    await clock.move(2000);
    await next.close();
    await clock.move(200);
    await others;
    expect(taken).toEqual(['another']);
  });

  test('is lost to one that took it while the cluster was out of reach, and not where the lease was forgotten', async () => {
    const { clock, state, cut, lost, hold, passing } = cluster();
    const first = await passing(hold('one', 'invokers', cut));
    const forgotten = await state.currentLease(lease);
    if (forgotten === undefined) throw new Error('there is no lease');
    await state.releaseLease(forgotten);
    await clock.move(3000);
    expect(await state.currentLease(lease)).toMatchObject({ holder: 'one' });
    cut.cutOff(true);
    const second = hold('two');
    await clock.move(4000);
    expect(lost).toEqual([]);
    cut.cutOff(false);
    await clock.move(3000);
    expect(lost).toEqual(['one']);
    await passing(first.close());
    await (await second).close();
  });
});
