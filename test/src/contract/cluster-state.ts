import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';

/** Two processes of one cluster, on a clock that advances only when a test moves it. */
export interface StateHome {
  /** The state as the first process sees it. */
  readonly one: ClusterState;
  /** The state as the second process sees it; the same object if a cluster is one process. */
  readonly other: ClusterState;
  /** Resolves with the result of `work`; advances the clock as needed, by less than 200 ms. */
  run<Result>(work: () => Result | Promise<Result>): Promise<Result>;
  /** Advances the clock, and lets messages under way arrive. */
  pass(durationMs: number): Promise<void>;
  /** Epoch ms. */
  now(): number;
  close(): Promise<void>;
}

const minuteMs = 60_000;

/** Registers the cases that every ClusterState must pass. */
export function testClusterState(name: string, makeHome: () => Promise<StateHome>): void {
  describe(name, () => {
    let home: StateHome;
    beforeEach(async () => {
      home = await makeHome();
    });
    afterEach(() => home.close());

    /** Advances the clock to the start of a minute, so that the next steps lie in one minute. */
    const toNextMinute = (): Promise<void> => home.pass(minuteMs - (home.now() % minuteMs));

    describe('window counters', () => {
      test('count together what all processes add, by name, window length and key', async () => {
        await toNextMinute();
        const add = (state: ClusterState, counter: string, windowMs: number, key: string): Promise<number> =>
          home.run(() => state.windowCounters(counter, windowMs).add(key));
        expect(await add(home.one, 'fires', minuteMs, 'a')).toBe(1);
        expect(await add(home.other, 'fires', minuteMs, 'a')).toBe(2);
        expect(await add(home.one, 'fires', minuteMs, 'b')).toBe(1);
        expect(await add(home.one, 'invocations', minuteMs, 'a')).toBe(1);
        expect(await add(home.one, 'fires', 10 * minuteMs, 'a')).toBe(1);
        expect(await add(home.one, 'fires', minuteMs, 'a')).toBe(3);
      });

      test('count as much as is added, which may be nothing', async () => {
        await toNextMinute();
        const counters = home.one.windowCounters('spent', minuteMs);
        expect(await home.run(() => counters.add('a', 0))).toBe(0);
        expect(await home.run(() => counters.add('a', 1500))).toBe(1500);
        expect(await home.run(() => home.other.windowCounters('spent', minuteMs).add('a', 250))).toBe(1750);
        expect(await home.run(() => counters.add('a', 0))).toBe(1750);
      });

      test('start from zero with every window, which starts at a multiple of its length', async () => {
        await toNextMinute();
        const counters = home.one.windowCounters('fires', minuteMs);
        await home.pass(minuteMs - 1000);
        expect(await home.run(() => counters.add('a'))).toBe(1);
        expect(await home.run(() => counters.add('a'))).toBe(2);
        await toNextMinute();
        expect(await home.run(() => counters.add('a'))).toBe(1);
        await home.pass(3 * minuteMs);
        expect(await home.run(() => counters.add('a'))).toBe(1);
      });

      test('lose none that are added at once', async () => {
        await toNextMinute();
        const counts = await home.run(() =>
          Promise.all(
            Array.from({ length: 40 }, (_, at) =>
              (at % 2 ? home.one : home.other).windowCounters('fires', minuteMs).add('a'),
            ),
          ),
        );
        expect(counts.sort((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, at) => at + 1));
      });
    });

    describe('holds', () => {
      test('count holders of all processes until they release', async () => {
        const one = home.one.holds('inFlight');
        const other = home.other.holds('inFlight');
        expect(await home.run(() => one.count('ns'))).toBe(0);
        expect(await home.run(() => one.hold('ns', 't1', 60_000))).toBe(1);
        expect(await home.run(() => other.hold('ns', 't2', 60_000))).toBe(2);
        expect(await home.run(() => other.hold('elsewhere', 't3', 60_000))).toBe(1);
        expect(await home.run(() => home.one.holds('others').count('ns'))).toBe(0);
        await home.run(() => other.release('ns', 't1'));
        await home.run(() => other.release('ns', 't1'));
        await home.run(() => other.release('nothing', 't1'));
        expect(await home.run(() => one.count('ns'))).toBe(1);
        await home.run(() => one.release('ns', 't2'));
        expect(await home.run(() => one.count('ns'))).toBe(0);
        expect(await home.run(() => one.count('elsewhere'))).toBe(1);
        expect(await home.run(() => one.tokens('elsewhere'))).toEqual(['t3']);
        expect(await home.run(() => one.tokens('ns'))).toEqual([]);
      });

      test('are listed with their keys and the time that is left, those of one name and not over', async () => {
        const holds = home.one.holds('in [fl*ght');
        await home.run(() => holds.hold('a "key"', 'one', 100_000));
        await home.run(() => holds.hold('a "key"', 'two', 100_000));
        await home.run(() => holds.hold('other', 'three', 5000));
        await home.run(() => home.one.holds('in [fl*ght 2').hold('a "key"', 'four', 100_000));
        await home.run(() => home.one.holds('in xflyyght').hold('a "key"', 'five', 100_000));
        await home.pass(10_000);
        const all = await home.run(() => home.other.holds('in [fl*ght').all());
        expect(all.map(({ key, token }) => [key, token]).sort()).toEqual([
          ['a "key"', 'one'],
          ['a "key"', 'two'],
        ]);
        for (const { leftMs } of all) {
          expect(leftMs).toBeGreaterThan(80_000);
          expect(leftMs).toBeLessThanOrEqual(90_000);
        }
      });

      test('end by themselves when their time is over, each in its own', async () => {
        const holds = home.one.holds('inFlight');
        await home.run(() => holds.hold('ns', 'long', 100_000));
        await home.run(() => holds.hold('ns', 'short', 10_000));
        await home.run(() => holds.hold('ns', 'middle', 50_000));
        await home.pass(9000);
        expect(await home.run(() => holds.count('ns'))).toBe(3);
        await home.pass(2000);
        expect(await home.run(() => holds.count('ns'))).toBe(2);
        expect([...(await home.run(() => holds.tokens('ns')))].sort()).toEqual(['long', 'middle']);
        expect(await home.run(() => holds.hold('ns', 'new', 10_000))).toBe(3);
        await home.pass(45_000);
        expect(await home.run(() => holds.count('ns'))).toBe(1);
        await home.pass(60_000);
        expect(await home.run(() => holds.count('ns'))).toBe(0);
      });

      test('a token that holds again is one holder, for the time asked last', async () => {
        const holds = home.one.holds('inFlight');
        await home.run(() => holds.hold('ns', 't', 10_000));
        await home.pass(8000);
        expect(await home.run(() => holds.hold('ns', 't', 10_000))).toBe(1);
        await home.pass(8000);
        expect(await home.run(() => holds.count('ns'))).toBe(1);
        expect(await home.run(() => holds.hold('ns', 't', 1000))).toBe(1);
        await home.pass(2000);
        expect(await home.run(() => holds.count('ns'))).toBe(0);
      });
    });

    describe('leases', () => {
      const acquire = (state: ClusterState, holder: string) =>
        home.run(() => state.acquireLease('leader', holder, 10_000));

      test('are held by one at a time', async () => {
        const first = await acquire(home.one, 'a');
        expect(first).toMatchObject({ name: 'leader', holder: 'a' });
        expect(await acquire(home.other, 'b')).toBeUndefined();
        expect(await home.run(() => home.other.currentLease('leader'))).toEqual(first);
        expect(await home.run(() => home.other.acquireLease('another', 'b', 10_000))).toMatchObject({ holder: 'b' });
        const winners = await home.run(() =>
          Promise.all(['c', 'd', 'e', 'f'].map((holder) => home.one.acquireLease('race', holder, 10_000))),
        );
        expect(winners.filter((lease) => lease !== undefined)).toHaveLength(1);
      });

      test('last as long as they are renewed', async () => {
        const lease = await acquire(home.one, 'a');
        if (lease === undefined) throw new Error('no lease');
        await home.pass(8000);
        expect(await home.run(() => home.one.renewLease(lease, 10_000))).toBe(true);
        await home.pass(8000);
        expect(await acquire(home.other, 'b')).toBeUndefined();
        await home.pass(3000);
        expect(await home.run(() => home.one.renewLease(lease, 10_000))).toBe(false);
        expect(await home.run(() => home.one.currentLease('leader'))).toBeUndefined();
        expect(await acquire(home.other, 'b')).toMatchObject({ holder: 'b' });
      });

      test('come with ever greater epochs, and an old one does nothing', async () => {
        const old = await acquire(home.one, 'a');
        const again = await acquire(home.one, 'a');
        if (old === undefined || again === undefined) throw new Error('no lease');
        expect(again.epoch).toBeGreaterThan(old.epoch);
        expect(await home.run(() => home.one.renewLease(old, 10_000))).toBe(false);
        await home.run(() => home.one.releaseLease(old));
        expect(await home.run(() => home.one.currentLease('leader'))).toEqual(again);
        await home.run(() => home.one.releaseLease(again));
        await home.run(() => home.one.releaseLease(again));
        const next = await acquire(home.other, 'b');
        expect(next?.epoch).toBeGreaterThan(again.epoch);
        const elsewhere = await home.run(() => home.one.acquireLease('another', 'a', 10_000));
        expect(elsewhere?.epoch).toBeGreaterThan(next?.epoch ?? Infinity);
      });
    });

    describe('tables', () => {
      test('hold rows that all processes see, and copies of values', async () => {
        const value = { free: [1, 2] };
        await home.run(() => home.one.setRow('nodes', 'n/1 ä', value));
        value.free.push(3);
        await home.run(() => home.other.setRow('nodes', 'n2', null));
        await home.run(() => home.other.setRow('others', 'n3', 'x'));
        const rows = await home.run(() => home.other.rows('nodes'));
        expect(rows).toEqual(
          new Map<string, JsonValue>([
            ['n/1 ä', { free: [1, 2] }],
            ['n2', null],
          ]),
        );
        (rows.get('n/1 ä') as { free: number[] }).free.push(4);
        expect((await home.run(() => home.one.rows('nodes'))).get('n/1 ä')).toEqual({ free: [1, 2] });
        await home.run(() => home.one.deleteRow('nodes', 'n2'));
        await home.run(() => home.one.deleteRow('nodes', 'nothing'));
        expect([...(await home.run(() => home.other.rows('nodes'))).keys()]).toEqual(['n/1 ä']);
        expect(await home.run(() => home.one.rows('empty'))).toEqual(new Map());
      });

      test('forget rows whose time is over', async () => {
        await home.run(() => home.one.setRow('nodes', 'kept', 1, 10_000));
        await home.run(() => home.one.setRow('nodes', 'lost', 1, 10_000));
        await home.run(() => home.one.setRow('nodes', 'lasting', 1));
        await home.pass(8000);
        await home.run(() => home.one.setRow('nodes', 'kept', 2, 10_000));
        await home.pass(8000);
        expect([...(await home.run(() => home.one.rows('nodes'))).entries()].sort()).toEqual([
          ['kept', 2],
          ['lasting', 1],
        ]);
      });

      test('tell who watches of every change, in order, until they stop', async () => {
        const seen: [string, JsonValue | undefined][] = [];
        const watch = await home.run(() => home.other.watch('nodes', (key, value) => seen.push([key, value])));
        await home.run(() => home.one.setRow('nodes', 'a', 1));
        await home.run(() => home.other.setRow('nodes', 'a', { now: 2 }));
        await home.run(() => home.one.setRow('others', 'a', 1));
        await home.run(() => home.one.deleteRow('nodes', 'a'));
        await home.run(() => home.one.deleteRow('nodes', 'a'));
        await home.pass(1000);
        expect(seen).toEqual([
          ['a', 1],
          ['a', { now: 2 }],
          ['a', undefined],
        ]);
        await watch.close();
        await watch.close();
        await home.run(() => home.one.setRow('nodes', 'b', 1));
        await home.pass(1000);
        expect(seen).toHaveLength(3);
      });
    });

    describe('channels', () => {
      test('bring each message to every subscriber, once, in order and as a copy', async () => {
        const first: JsonValue[] = [];
        const second: JsonValue[] = [];
        await home.run(() => home.one.subscribe('news', (message) => first.push(message)));
        const subscription = await home.run(() => home.other.subscribe('news', (message) => second.push(message)));
        const message = { number: 1 };
        await home.run(() => home.one.publish('news', message));
        message.number = 100;
        await home.run(() => home.one.publish('elsewhere', 'not this'));
        for (const number of [2, 3, 4]) await home.run(() => home.one.publish('news', { number }));
        await home.pass(1000);
        expect(first).toEqual([1, 2, 3, 4].map((number) => ({ number })));
        expect(second).toEqual(first);
        await subscription.close();
        await home.run(() => home.other.publish('news', 'last'));
        await home.pass(1000);
        expect(first).toHaveLength(5);
        expect(second).toHaveLength(4);
      });
    });

    test('a closed one refuses', async () => {
      await home.one.close();
      await expect(home.run(() => home.one.rows('nodes'))).rejects.toMatchObject({ name: 'StateUnavailableError' });
      await expect(home.run(() => home.one.publish('news', 1))).rejects.toMatchObject({
        name: 'StateUnavailableError',
      });
    });
  });
}
