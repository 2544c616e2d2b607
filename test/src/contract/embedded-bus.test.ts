import { describe, expect, test } from '@jest/globals';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Durable } from '@gpuwhisk/common/bus/durable';
import { openDurable } from '@gpuwhisk/common/bus/durable';
import type { Delivery } from '@gpuwhisk/common/bus/message-bus';
import { simulatedBus } from '@gpuwhisk/common/testing/simulated-bus';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { systemDisk } from '@gpuwhisk/common/system/disk';
import { seededRandom, systemRandom } from '@gpuwhisk/common/system/random';
import { testMessageBus } from './message-bus.js';
import { testUserEvents } from './user-events.js';

const makeFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'gpuwhisk-bus-'));
const removeFolder = (folder: string): Promise<void> => rm(folder, { recursive: true, force: true });
const openIn = (folder: string, more: { segmentBytes?: number; maxLogBytes?: number } = {}): Promise<Durable> =>
  openDurable({ disk: systemDisk, folder, clock: systemClock, random: systemRandom, ...more });

testMessageBus('the embedded bus', async () => {
  const folder = await makeFolder();
  return { open: () => openIn(folder), remove: () => removeFolder(folder) };
});

testUserEvents('the embedded bus', async () => {
  const folder = await makeFolder();
  const { bus, close } = await openIn(folder);
  return { bus, close: () => close().then(() => removeFolder(folder)) };
});

testMessageBus('the simulated bus', async () => {
  const folder = await makeFolder();
  const random = seededRandom(7);
  const faults = { delayShare: 0.2, delayMs: 3, withholdShare: 0.02, withholdMs: 20, doubleShare: 0.2 };
  return {
    open: async () => {
      const { bus, close } = await openIn(folder);
      return { bus: simulatedBus(bus, { clock: systemClock, random, faults }), close };
    },
    remove: () => removeFolder(folder),
  };
});

describe('what the log of the embedded bus keeps', () => {
  const options = { durable: true, maxPendingMessages: 10_000, maxPendingBytes: 1e9 };
  const small = { segmentBytes: 20_000, maxLogBytes: 100_000 };

  async function withFolder(run: (folder: string) => Promise<void>): Promise<void> {
    const folder = await makeFolder();
    try {
      await run(folder);
    } finally {
      await removeFolder(folder);
    }
  }

  /** Sends messages that are consumed at once, so that the log grows. */
  async function fill(durable: Durable, count: number): Promise<void> {
    for (let n = 0; n < count; n += 20) {
      const receipts = Array.from({ length: 20 }, (_, i) =>
        durable.bus.send('t', { activationId: `fill${n + i}`, text: 'x'.repeat(500) }),
      );
      await Promise.all(receipts.map((receipt) => receipt.synced()));
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }

  test('files go when all that is in them is done', () =>
    withFolder(async (folder) => {
      const durable = await openIn(folder, small);
      await durable.bus.ensureTopic('t', options);
      await durable.bus.subscribe('t', 'g', { maxInFlight: 100 }, (delivery) => delivery.done());
      await fill(durable, 2000);
      await fill(durable, 300);
      expect((await readdir(folder)).length).toBeLessThanOrEqual(20);
      await durable.close();
    }));

  test('a message that is long in hand is carried forward with its start mark, under its offset', () =>
    withFolder(async (folder) => {
      let durable = await openIn(folder, small);
      await durable.bus.ensureTopic('t', options);
      let long: Delivery | undefined;
      await durable.bus.subscribe('t', 'g', { maxInFlight: 100 }, (delivery) => {
        if (delivery.message.activationId === 'long') long = delivery;
        else delivery.done();
      });
      durable.bus.send('t', { activationId: 'long', text: 'kept' });
      await Promise.resolve();
      await durable.marks.mark('long')();
      await fill(durable, 2000);
      await fill(durable, 300);
      expect((await readdir(folder)).length).toBeLessThanOrEqual(20);
      await durable.close();

      for (let life = 0; life < 2; life++) {
        durable = await openIn(folder, small);
        expect(durable.marks.startedBefore('long')).toBe(true);
        expect(durable.marks.startedBefore('fill7')).toBe(false);
        await durable.bus.ensureTopic('t', options);
        expect(durable.bus.lag('t', 'g')).toBe(1);
        await durable.close();
      }
      durable = await openIn(folder, small);
      await durable.bus.ensureTopic('t', options);
      const again = await new Promise<Delivery>((resolve, reject) => {
        durable.bus.subscribe('t', 'g', { maxInFlight: 1 }, resolve).catch(reject);
      });
      expect(again).toMatchObject({ message: { activationId: 'long', text: 'kept' }, redelivered: true });
      expect(again.offset).toBe(long?.offset);
      again.done();
      expect(durable.marks.startedBefore('long')).toBe(false);
      await durable.close();
    }));

  test('a start mark is there as long as its message is unfinished, and not after', () =>
    withFolder(async (folder) => {
      let durable = await openIn(folder);
      await durable.bus.ensureTopic('t', options);
      const deliveries: Delivery[] = [];
      await durable.bus.subscribe('t', 'g', { maxInFlight: 5 }, (delivery) => deliveries.push(delivery));
      for (const activationId of ['a', 'b', 'c']) durable.bus.send('t', { activationId });
      await Promise.resolve();
      durable.marks.mark('a');
      await durable.marks.mark('b')();
      expect(durable.marks.startedBefore('a')).toBe(false);
      deliveries[0]?.done();
      await durable.close();
      durable = await openIn(folder);
      expect(['a', 'b', 'c'].map((id) => durable.marks.startedBefore(id))).toEqual([false, true, false]);
      await durable.close();
    }));
});
