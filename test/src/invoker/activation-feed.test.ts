import { beforeEach, describe, expect, test } from '@jest/globals';
import { EmbeddedBus } from '@gpuwhisk/common/bus/embedded-bus';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { ActivationFeed } from '@gpuwhisk/common/activations/activation-feed';
import { message } from './activation-harness.js';
import { SimulatedClock } from '../simulation/simulated-clock.js';

const topic = 'invoker0';

describe('the feed', () => {
  let clock: SimulatedClock;
  let bus: EmbeddedBus;
  /** The handler's calls, in order. */
  let told: string[];
  let dones: Map<string, () => void>;

  beforeEach(async () => {
    clock = new SimulatedClock();
    bus = new EmbeddedBus({ clock });
    told = [];
    dones = new Map();
    await bus.ensureTopic(topic, { durable: false, maxPendingMessages: 1000, maxPendingBytes: Infinity });
  });

  async function open(maxInFlight = 10): Promise<ActivationFeed> {
    const take = (how: string) => (message: ActivationMessage, done: () => void) => {
      told.push(`${how} ${message.activationId}`);
      dones.set(message.activationId, done);
    };
    const feed = new ActivationFeed(bus, topic, maxInFlight, {
      accept: take('accept'),
      recover: take('recover'),
      malformed: (_offset, reason) => told.push(reason),
    });
    await feed.open();
    return feed;
  }

  async function send(...ids: string[]): Promise<void> {
    for (const activationId of ids) bus.send(topic, { ...message, activationId } as unknown as JsonObject);
    await clock.runFor(1);
  }

  async function finish(id: string): Promise<void> {
    dones.get(id)?.();
    await clock.runFor(1);
  }

  test('hands each activation over once and is done with its message when its record is durable', async () => {
    const feed = await open();
    await send('a', 'b');
    expect(told).toEqual(['accept a', 'accept b']);
    expect([feed.pending, bus.lag(topic, topic)]).toEqual([2, 2]);
    await finish('a');
    expect([feed.pending, bus.lag(topic, topic)]).toEqual([1, 1]);
  });

  test('holds no more activations than it may', async () => {
    await open(2);
    await send('a', 'b', 'c', 'd');
    expect(told).toEqual(['accept a', 'accept b']);
    await finish('b');
    expect(told).toEqual(['accept a', 'accept b', 'accept c']);
  });

  test('a doubled message changes nothing while the first is in hand, and ends with it', async () => {
    const feed = await open();
    await send('a', 'a', 'b', 'a');
    expect(told).toEqual(['accept a', 'accept b']);
    expect([feed.pending, bus.lag(topic, topic)]).toEqual([2, 4]);
    await finish('a');
    expect([feed.pending, bus.lag(topic, topic)]).toEqual([1, 1]);
  });

  test('a doubled message that comes after the end is dropped', async () => {
    await open();
    await send('a');
    await finish('a');
    await send('a');
    expect(told).toEqual(['accept a']);
    expect(bus.lag(topic, topic)).toBe(0);
  });

  test('done twice is once', async () => {
    await open();
    await send('a', 'b');
    await finish('a');
    await finish('a');
    expect(bus.lag(topic, topic)).toBe(1);
  });

  test('one that goes back to its sender is taken again when it comes again, and its first message ends apart', async () => {
    const feed = await open();
    await send('a', 'a', 'b');
    const end = feed.letGo('a');
    await send('a');
    expect(told).toEqual(['accept a', 'accept b', 'accept a']);
    expect([feed.pending, bus.lag(topic, topic)]).toEqual([2, 4]);
    end();
    await clock.runFor(1);
    expect([feed.pending, bus.lag(topic, topic)]).toEqual([2, 2]);
    await finish('a');
    expect([feed.pending, bus.lag(topic, topic)]).toEqual([1, 1]);
  });

  test('what an earlier life had in hand is told apart', async () => {
    const first = await open();
    await send('a', 'b');
    await finish('a');
    await first.close();
    await send('c');
    expect(told).toEqual(['accept a', 'accept b']);
    await open();
    await clock.runFor(1);
    expect(told.slice(2)).toEqual(['recover b', 'accept c']);
  });

  test('skips what is no activation, and is done with it', async () => {
    await open();
    bus.send(topic, { activationId: 'a' });
    await send('b', 'not an id');
    expect(told).toEqual(['transid malformed', 'accept b', 'activationId malformed']);
    expect(bus.lag(topic, topic)).toBe(1);
  });

  test('takes nothing more once it is closed', async () => {
    const feed = await open();
    await feed.close();
    await send('a');
    expect(told).toEqual([]);
    expect(bus.lag(topic, topic)).toBe(1);
  });
});
