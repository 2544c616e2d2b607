import { describe, expect, test } from '@jest/globals';
import { createLogger } from '../logging.js';
import { seededRandom } from '../system/random.js';
import { sleep, systemClock } from '../system/clock.js';
import type { Clock } from '../system/clock.js';
import type { ClusterState } from './cluster-state.js';
import { holdName, LivenessFence, assignInstanceId, InstanceIdError } from './instance-ids.js';
import type { HeldName } from './instance-ids.js';
import { ProcessRegistry } from './process-registry.js';
import { simulatedStore } from '../testing/simulated-store.js';
import { embeddedState } from './embedded-state.js';
import { Membership } from './membership.js';
import { simulatedState } from '../testing/simulated-state.js';

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

const store = () => simulatedStore({ clock: systemClock, random: seededRandom(1) });

test('each name has a number of its own, and keeps it', async () => {
  const state = embeddedState(systemClock);
  const registry = new ProcessRegistry(store(), 'invokers');
  const numberOf = (name: string, hadBefore?: number, holder = `folder of ${name}`): Promise<number> =>
    assignInstanceId({
      ...{ state, clock: systemClock, registry, name, holder },
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
  expect(await numberOf('d')).toBe(3);
  expect(await numberOf('a')).toBe(first);
  await expect(numberOf('renamed', first, 'folder of a')).rejects.toThrow('start it with --name a');
  await expect(numberOf('e', first)).rejects.toBeInstanceOf(InstanceIdError);
});

test('a number is never given to another data folder, and a retired one to none', async () => {
  const state = embeddedState(systemClock);
  const registry = new ProcessRegistry(store(), 'invokers');
  const numberOf = (name: string, holder: string): Promise<number> =>
    assignInstanceId({ state, clock: systemClock, registry, name, holder });
  expect([await numberOf('a', 'old'), await numberOf('b', 'other')]).toEqual([0, 1]);
  await expect(numberOf('a', 'new')).rejects.toThrow(
    "'a' of the invokers has number 0 with another data folder: start it with that one, or retire it (wskadmin invoker retire a)",
  );
  await registry.retire(0, { silentSinceMs: 1, takenOverBy: 0, isSettled: false });
  await expect(numberOf('a', 'old')).rejects.toThrow("number 0 of the invokers, 'a', which was retired");
  await expect(numberOf('renamed', 'old')).rejects.toThrow('which was retired');
  expect(await numberOf('a', 'new')).toBe(2);
  for (const name of ['a', 'b']) await state.deleteRow('instances invokers', name);
  expect([await numberOf('c', 'third'), await numberOf('a', 'new')]).toEqual([3, 2]);
});

test('nothing begins after a silence of all engines until the name is confirmed', async () => {
  const clock = movedClock();
  const fence = new LivenessFence(clock, 8000);
  for (let second = 0; second < 20; second++) {
    await clock.move(1000);
    fence.heard();
  }
  expect(fence.isOpen).toBe(true);
  await clock.move(8001);
  // As one that wakes up: it is heard again before anything asks.
  fence.heard();
  expect(fence.isOpen).toBe(false);
  fence.heard();
  expect(fence.isOpen).toBe(false);
  fence.confirmed();
  expect(fence.isOpen).toBe(true);
});

describe('the name of a process', () => {
  const lease = 'name invokers a';

  function cluster() {
    const clock = movedClock();
    const state = embeddedState(clock);
    // One process whose way to the state can be cut.
    const cut = simulatedState(state, { clock, random: seededRandom(1) });
    const lost: string[] = [];
    const retired = new Set<string>();
    const store = { isAway: false };
    const fence = new LivenessFence(clock, 5000);
    const logger = createLogger({ level: 'silent' });
    const hold = (holder: string, sort = 'invokers', where: ClusterState = state): Promise<HeldName> =>
      holdName({
        state: where,
        clock,
        logger,
        sort,
        name: 'a',
        holder,
        fence,
        isRetired: () =>
          store.isAway ? Promise.reject(new Error('the store is away')) : Promise.resolve(retired.has(holder)),
        onLost: () => lost.push(holder),
      });
    const passing = async <Result>(work: Promise<Result>): Promise<Result> => {
      let isOver = false;
      void work.finally(() => (isOver = true));
      while (!isOver) await clock.move(100);
      return work;
    };
    return { clock, state, cut, lost, retired, store, fence, hold, passing };
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

  test('is lost to a retirement that came while the cluster was out of reach', async () => {
    const { clock, state, cut, lost, retired, hold, passing } = cluster();
    const first = await passing(hold('one', 'invokers', cut));
    cut.cutOff(true);
    await clock.move(4000);
    expect(await state.currentLease(lease)).toBeUndefined();
    retired.add('one');
    cut.cutOff(false);
    await clock.move(3000);
    expect(lost).toEqual(['one']);
    await passing(first.close());
  });

  test('is not confirmed before the store has told whether there was a retirement meanwhile', async () => {
    const { clock, cut, lost, retired, store, fence, hold, passing } = cluster();
    const first = await passing(hold('one', 'invokers', cut));
    cut.cutOff(true);
    await clock.move(8000);
    expect(fence.isOpen).toBe(false);
    retired.add('one');
    store.isAway = true;
    cut.cutOff(false);
    await clock.move(10_000);
    expect([fence.isOpen, lost]).toEqual([false, []]);
    store.isAway = false;
    await clock.move(3000);
    expect([fence.isOpen, lost]).toEqual([false, ['one']]);
    await passing(first.close());
  });
});
