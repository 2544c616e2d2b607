import type { Durable } from '@gpuwhisk/common/bus/durable';
import { openDurable } from '@gpuwhisk/common/bus/durable';
import type { Delivery } from '@gpuwhisk/common/bus/message-bus';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { SimulatedClock } from './simulated-clock.js';
import { SimulatedDisk } from './simulated-disk.js';

const topic = 'invoker0';
const options = { durable: true, maxPendingMessages: 10_000, maxPendingBytes: 1e9 };

interface Sent {
  text: string;
  /** The message's receipt resolved. */
  synced: boolean;
  /** A consumer said done. */
  done: boolean;
  /** After the done the bus was closed in good order. */
  doneDurably: boolean;
  /** mark was called, and the mark resolved as durable. */
  marked: boolean;
  markSynced: boolean;
}

/** Counts of one run. */
export interface DurableRun {
  sent: number;
  delivered: number;
  redelivered: number;
  crashes: number;
  damage: number;
  failures: number;
}

/**
 * One seeded history of the durable bus: several lives, each of which sends, consumes and marks until the power is
 * lost, the disk fails or the bus is closed. Throws if the bus breaks a promise.
 */
export async function runDurable(seed: number): Promise<DurableRun> {
  const random = seededRandom(seed);
  const clock = new SimulatedClock();
  const disk = new SimulatedDisk(clock, random);
  const sent = new Map<string, Sent>();
  const run: DurableRun = { sent: 0, delivered: 0, redelivered: 0, crashes: 0, damage: 0, failures: 0 };
  const below = (limit: number): number => random.uint32() % limit;
  let life = 0;
  /** Messages done in the present life. */
  const doneNow = new Set<Sent>();
  // Handlers must not throw, so broken promises are collected.
  const broken: string[] = [];
  const check = (holds: boolean, promise: string): void => {
    if (!holds) broken.push(promise);
  };

  const send = (durable: Durable): void => {
    const activationId = `m${run.sent++}`;
    const text = `${activationId} `.repeat(below(40));
    const message: Sent = { text, synced: false, done: false, doneDurably: false, marked: false, markSynced: false };
    // A message counts as sent from here on: the log may contain a message whose send failed.
    sent.set(activationId, message);
    const thisLife = life;
    const receipt = durable.bus.send(topic, { activationId, text });
    if (below(2) === 0) return;
    receipt.synced().then(
      () => {
        if (thisLife === life) message.synced = true;
      },
      () => {
        run.failures++;
      },
    );
  };

  const consume = async (durable: Durable): Promise<Set<string>> => {
    const thisLife = life;
    const delivered = new Set<string>();
    let lastOffset = 0;
    const take = (delivery: Delivery): void => {
      if (thisLife !== life) return;
      const id = String(delivery.message.activationId);
      const message = sent.get(id);
      check(message !== undefined && message.text === delivery.message.text, `'${id}' was sent as it came`);
      if (!message) return;
      check(!message.doneDurably, `'${id}' was done before the bus was closed in good order`);
      check(delivery.offset > lastOffset, 'messages come in order');
      check(!delivered.has(id), 'a message comes once in a life');
      lastOffset = delivery.offset;
      delivered.add(id);
      run.delivered++;
      if (delivery.redelivered) run.redelivered++;
      const started = durable.marks.startedBefore(id);
      check(!started || message.marked, `a mark of '${id}' was not invented`);
      if (!message.done) check(started || !message.markSynced, `the synced mark of '${id}' is there`);
      if (below(3) > 0) mark(durable, id, message);
      clock.setTimer(below(below(20) === 0 ? 5000 : 80), () => {
        message.done = true;
        doneNow.add(message);
        delivery.done();
      });
    };
    await clock.runUntil(durable.bus.subscribe(topic, topic, { maxInFlight: 1 + below(20) }, take));
    return delivered;
  };

  const mark = (durable: Durable, id: string, message: Sent): void => {
    const thisLife = life;
    try {
      const synced = durable.marks.mark(id);
      message.marked = true;
      if (below(2) === 0) return;
      synced().then(
        () => {
          if (thisLife === life) message.markSynced = true;
        },
        () => {
          run.failures++;
        },
      );
    } catch {
      run.failures++;
    }
  };

  // Small sizes, so that files are closed, carried forward and released all the time.
  const sizes = { segmentBytes: 2000, maxLogBytes: 8000, releaseEvery: 8 };
  const open = (): Promise<Durable> => clock.runUntil(openDurable({ disk, folder: '/log', clock, random, ...sizes }));

  const lives = 3 + below(4);
  for (; life < lives; life++) {
    const owed = [...sent].filter(([, message]) => message.synced && !message.done).map(([id]) => id);
    doneNow.clear();
    const durable = await open();
    run.damage += durable.damage.length;
    await clock.runUntil(durable.bus.ensureTopic(topic, options));
    const last = life === lives - 1;
    const delivered = await consume(durable);
    if (!last && below(4) === 0) disk.failLater(below(2) === 0 ? 'sync' : 'append', below(20), 'EIO');
    for (let step = below(below(4) === 0 ? 400 : 60); step > 0; step--) {
      for (let count = below(4); count > 0; count--) {
        try {
          send(durable);
        } catch {
          run.failures++;
        }
      }
      await clock.runFor(below(15));
    }
    if (last) {
      await clock.runFor(3_600_000);
      for (const id of owed) check(delivered.has(id), `'${id}', which was synced, is there`);
      check(durable.bus.lag(topic, topic) === 0, 'everything is consumed in the end');
    }
    if (last || below(5) === 0) {
      const done = [...doneNow];
      const kept = await clock.runUntil(
        durable.close().then(
          () => true,
          () => false,
        ),
      );
      if (kept) for (const message of done) message.doneDurably = true;
    } else {
      run.crashes++;
    }
    clock.dropAll();
    disk.crash();
    if (broken.length > 0) throw new Error(`broken in life ${life}: ${broken.slice(0, 5).join('; ')}`);
  }
  return run;
}
