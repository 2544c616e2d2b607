import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Delivery, MessageBus, TopicOptions } from '@gpuwhisk/common/bus/message-bus';
import { TopicFullError } from '@gpuwhisk/common/bus/message-bus';

/** Storage for buses of the kind under test. */
export interface BusHome {
  /** Whether a message within one process is delivered as the object that was sent; default true. */
  handsOverObjects?: boolean;
  /** Whether other processes may have consumed a group between two subscriptions of this one; default false. */
  sharesGroups?: boolean;
  /** Opens a bus on the storage, with the messages that an earlier closed bus had not finished. */
  open(): Promise<{ bus: MessageBus; close(): Promise<void> }>;
  /** Deletes the storage. */
  remove(): Promise<void>;
}

const durable: TopicOptions = { durable: true, maxPendingMessages: 1000, maxPendingBytes: 1e6 };
const inMemory: TopicOptions = { ...durable, durable: false };

/** Collects deliveries. A bus may deliver a message twice; `firsts` has each message once. */
class Collector {
  readonly firsts: Delivery[] = [];
  private readonly seen = new Set<number>();

  constructor(private readonly onDelivery: (delivery: Delivery) => void = () => undefined) {}

  readonly handler = (delivery: Delivery): void => {
    if (!this.seen.has(delivery.offset)) this.firsts.push(delivery);
    this.seen.add(delivery.offset);
    this.onDelivery(delivery);
  };

  get numbers(): unknown[] {
    return this.firsts.map((delivery) => delivery.message.n);
  }

  /** Waits until `count` different messages have arrived; fails after five seconds. */
  async expectCount(count: number): Promise<void> {
    for (let tries = 0; this.firsts.length < count && tries < 1000; tries++) await pause(5);
    expect(this.firsts.length).toBe(count);
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const upTo = (end: number): number[] => Array.from({ length: end }, (_, i) => i);
const doneAtOnce = (): Collector => new Collector((delivery) => delivery.done());

/** Registers the cases that every MessageBus must pass. */
export function testMessageBus(name: string, makeHome: () => Promise<BusHome>): void {
  describe(`${name} keeps the MessageBus contract`, () => {
    let home: BusHome;
    let bus: MessageBus;
    let close: () => Promise<void>;

    const open = async (): Promise<void> => {
      ({ bus, close } = await home.open());
    };
    const reopen = async (): Promise<void> => {
      await close();
      await open();
      await bus.ensureTopic('t', durable);
    };
    const sendNumbers = (topic: string, numbers: number[]): void => {
      for (const n of numbers) bus.send(topic, { n });
    };

    beforeEach(async () => {
      home = await makeHome();
      await open();
      await bus.ensureTopic('t', durable);
      await bus.ensureTopic('m', inMemory);
    });

    afterEach(async () => {
      await close();
      await home.remove();
    });

    test.each(['t', 'm'])('messages come in the order of sending, offsets rising (%s)', async (topic) => {
      const got = doneAtOnce();
      sendNumbers(topic, upTo(50));
      await bus.subscribe(topic, 'g', { maxInFlight: 10 }, got.handler);
      sendNumbers(
        topic,
        upTo(100).map((n) => n + 50),
      );
      await got.expectCount(150);
      expect(got.numbers).toEqual(upTo(150));
      const offsets = got.firsts.map((delivery) => delivery.offset);
      expect(offsets).toEqual([...new Set(offsets)].sort((a, b) => a - b));
      expect(bus.lag(topic, 'g')).toBe(0);
    });

    test('a live message is what was sent, the very object where that is possible, and its length is known', async () => {
      const got = doneAtOnce();
      await bus.subscribe('t', 'g', { maxInFlight: 1 }, got.handler);
      const message = { n: 1, text: 'wörld' };
      bus.send('t', message);
      await got.expectCount(1);
      expect(got.firsts[0]?.message).toEqual(message);
      expect(got.firsts[0]?.message === message).toBe(home.handsOverObjects ?? true);
      expect(got.firsts[0]?.bytes).toBe(Buffer.byteLength(JSON.stringify(message)));
      expect(got.firsts[0]?.redelivered).toBe(false);
    });

    test('receipts resolve for both kinds of topics', async () => {
      await expect(bus.send('t', { n: 1 }).synced()).resolves.toBeUndefined();
      await expect(bus.send('m', { n: 1 }).synced()).resolves.toBeUndefined();
      const receipts = upTo(200).map((n) => bus.send('t', { n }));
      await Promise.all(receipts.map((receipt) => receipt.synced()));
    });

    test('a topic that was not made refuses', async () => {
      expect(() => bus.send('none', { n: 1 })).toThrow("'none'");
      await expect(bus.subscribe('none', 'g', { maxInFlight: 1 }, () => undefined)).rejects.toThrow("'none'");
    });

    test('no more than maxInFlight are with the handler, also when it changes', async () => {
      const got = new Collector();
      const subscription = await bus.subscribe('t', 'g', { maxInFlight: 3 }, got.handler);
      sendNumbers('t', upTo(20));
      await got.expectCount(3);
      await pause(50);
      expect(got.firsts).toHaveLength(3);
      subscription.setMaxInFlight(5);
      await got.expectCount(5);
      subscription.setMaxInFlight(2);
      for (const delivery of got.firsts.slice(0, 3)) delivery.done();
      await pause(50);
      expect(got.firsts).toHaveLength(5);
      got.firsts[3]?.done();
      await got.expectCount(6);
      expect(bus.lag('t', 'g')).toBe(16);
      subscription.setMaxInFlight(0);
      got.firsts[4]?.done();
      await pause(50);
      expect(got.firsts).toHaveLength(6);
    });

    test('done may come in any order, and twice is once', async () => {
      const got = new Collector();
      await bus.subscribe('t', 'g', { maxInFlight: 5 }, got.handler);
      sendNumbers('t', upTo(5));
      await got.expectCount(5);
      for (const index of [4, 2, 2, 0, 4]) got.firsts[index]?.done();
      expect(bus.lag('t', 'g')).toBe(2);
      for (const index of [1, 3]) got.firsts[index]?.done();
      expect(bus.lag('t', 'g')).toBe(0);
    });

    test('a new subscriber gets what the last one had not finished, marked, then the rest', async () => {
      const first = new Collector();
      const subscription = await bus.subscribe('t', 'g', { maxInFlight: 3 }, first.handler);
      sendNumbers('t', upTo(6));
      await first.expectCount(3);
      first.firsts[1]?.done();
      await first.expectCount(4);
      await subscription.close();
      const second = doneAtOnce();
      await bus.subscribe('t', 'g', { maxInFlight: 10 }, second.handler);
      await second.expectCount(5);
      expect(second.numbers).toEqual([0, 2, 3, 4, 5]);
      expect(second.firsts.slice(0, 3).map((delivery) => delivery.redelivered)).toEqual([true, true, true]);
      expect(second.firsts.at(-1)?.redelivered).toBe(home.sharesGroups ?? false);
      expect(first.firsts).toHaveLength(4);
      sendNumbers('t', [6]);
      await second.expectCount(6);
      expect(second.firsts.at(-1)?.redelivered).toBe(false);
    });

    test('what is delivered again keeps its order, also when it was delivered again in part', async () => {
      sendNumbers('t', upTo(6));
      for (const maxInFlight of [6, 2, 4]) {
        const got = new Collector();
        const subscription = await bus.subscribe('t', 'g', { maxInFlight }, got.handler);
        await got.expectCount(maxInFlight);
        expect(got.numbers).toEqual(upTo(maxInFlight));
        await subscription.close();
      }
    });

    test('a done that comes after the subscription was closed still counts', async () => {
      const first = new Collector();
      const subscription = await bus.subscribe('t', 'g', { maxInFlight: 2 }, first.handler);
      sendNumbers('t', upTo(2));
      await first.expectCount(2);
      await subscription.close();
      first.firsts[0]?.done();
      const second = doneAtOnce();
      await bus.subscribe('t', 'g', { maxInFlight: 2 }, second.handler);
      await second.expectCount(1);
      expect(second.numbers).toEqual([1]);
    });

    test('a group has one consumer', async () => {
      await bus.subscribe('t', 'g', { maxInFlight: 1 }, () => undefined);
      await expect(bus.subscribe('t', 'g', { maxInFlight: 1 }, () => undefined)).rejects.toThrow('consumer');
    });

    test('every group gets every message at its own pace', async () => {
      const one = doneAtOnce();
      const other = new Collector();
      await bus.subscribe('t', 'one', { maxInFlight: 10 }, one.handler);
      await bus.subscribe('t', 'other', { maxInFlight: 2 }, other.handler);
      sendNumbers('t', upTo(10));
      await one.expectCount(10);
      await other.expectCount(2);
      expect([bus.lag('t', 'one'), bus.lag('t', 'other')]).toEqual([0, 10]);
    });

    test('a topic without groups keeps messages for the first', async () => {
      sendNumbers('t', upTo(4));
      expect(bus.lag('t', 'later')).toBe(4);
      const got = doneAtOnce();
      await bus.subscribe('t', 'later', { maxInFlight: 2 }, got.handler);
      await got.expectCount(4);
    });

    describe('limits', () => {
      test('of messages', async () => {
        await bus.ensureTopic('small', { ...durable, maxPendingMessages: 3 });
        sendNumbers('small', upTo(3));
        expect(() => bus.send('small', { n: 3 })).toThrow(TopicFullError);
        expect(() => bus.send('small', { n: 3 })).toThrow("topic 'small' is full: 3 messages wait, 3 may");
        const got = new Collector();
        await bus.subscribe('small', 'g', { maxInFlight: 3 }, got.handler);
        await got.expectCount(3);
        expect(() => bus.send('small', { n: 3 })).toThrow(TopicFullError);
        got.firsts[1]?.done();
        bus.send('small', { n: 3 });
        await got.expectCount(4);
        await bus.ensureTopic('small', { ...durable, maxPendingMessages: 5 });
        sendNumbers('small', [4, 5]);
        expect(() => bus.send('small', { n: 6 })).toThrow(TopicFullError);
      });

      test.each([true, false])('of bytes (durable: %s)', async (isDurable) => {
        await bus.ensureTopic('small', { durable: isDurable, maxPendingMessages: 100, maxPendingBytes: 1000 });
        bus.send('small', { text: 'x'.repeat(700) });
        expect(() => bus.send('small', { text: 'x'.repeat(700) })).toThrow(TopicFullError);
        const got = doneAtOnce();
        await bus.subscribe('small', 'g', { maxInFlight: 3 }, got.handler);
        await got.expectCount(1);
        bus.send('small', { text: 'x'.repeat(700) });
        await got.expectCount(2);
        expect(() => bus.send('small', { text: 'x'.repeat(2000) })).toThrow(TopicFullError);
      });
    });

    describe('after closing and opening again', () => {
      test('what was not done comes again, marked and in order; what was done does not', async () => {
        const first = new Collector();
        await bus.subscribe('t', 'g', { maxInFlight: 5 }, first.handler);
        sendNumbers('t', upTo(10));
        await first.expectCount(5);
        for (const index of [0, 1, 3]) first.firsts[index]?.done();
        await first.expectCount(8);
        await reopen();
        expect(bus.lag('t', 'g')).toBe(7);
        const second = doneAtOnce();
        await bus.subscribe('t', 'g', { maxInFlight: 100 }, second.handler);
        sendNumbers('t', [10]);
        await second.expectCount(8);
        expect(second.numbers).toEqual([2, 4, 5, 6, 7, 8, 9, 10]);
        expect(second.firsts.map((delivery) => delivery.redelivered)).toEqual([...Array<boolean>(7).fill(true), false]);
        expect(second.firsts[0]?.offset).toBe(first.firsts[2]?.offset);
        await reopen();
        expect(bus.lag('t', 'g')).toBe(0);
      });

      test('offsets go on rising', async () => {
        const before = doneAtOnce();
        await bus.subscribe('t', 'g', { maxInFlight: 5 }, before.handler);
        sendNumbers('t', upTo(3));
        await before.expectCount(3);
        await reopen();
        const after = doneAtOnce();
        await bus.subscribe('t', 'g', { maxInFlight: 5 }, after.handler);
        sendNumbers('t', [3]);
        await after.expectCount(1);
        expect(after.firsts[0]?.offset).toBeGreaterThan(before.firsts[2]?.offset ?? Infinity);
      });

      test('every group goes on where it was, also one that had nothing done', async () => {
        const one = doneAtOnce();
        await bus.subscribe('t', 'one', { maxInFlight: 10 }, one.handler);
        await bus.subscribe('t', 'other', { maxInFlight: 0 }, () => undefined);
        sendNumbers('t', upTo(6));
        await one.expectCount(6);
        await reopen();
        expect([bus.lag('t', 'one'), bus.lag('t', 'other')]).toEqual([0, 6]);
        const other = doneAtOnce();
        await bus.subscribe('t', 'other', { maxInFlight: 10 }, other.handler);
        await other.expectCount(6);
        expect(other.numbers).toEqual(upTo(6));
      });

      test('topics in memory are empty', async () => {
        sendNumbers('m', upTo(3));
        await close();
        await open();
        await bus.ensureTopic('m', inMemory);
        expect(bus.lag('m', 'g')).toBe(0);
      });

      test('text survives as it was', async () => {
        const message = { text: 'ünïcödé 😀 \u0000 \u2028 "quoted"', list: [1, 0.5, null, true, {}] };
        bus.send('t', message);
        await reopen();
        const got = doneAtOnce();
        await bus.subscribe('t', 'g', { maxInFlight: 1 }, got.handler);
        await got.expectCount(1);
        expect(got.firsts[0]?.message).toEqual(message);
        expect(got.firsts[0]?.bytes).toBe(Buffer.byteLength(JSON.stringify(message)));
      });
    });

    test('a closed bus delivers and takes nothing; closing twice is once', async () => {
      const got = new Collector();
      await bus.subscribe('t', 'g', { maxInFlight: 1 }, got.handler);
      sendNumbers('t', upTo(2));
      await got.expectCount(1);
      await close();
      got.firsts[0]?.done();
      await pause(20);
      expect(got.firsts).toHaveLength(1);
      expect(() => bus.send('t', { n: 2 })).toThrow('closed');
      await close();
      await open();
      await bus.ensureTopic('t', durable);
    });
  });
}
