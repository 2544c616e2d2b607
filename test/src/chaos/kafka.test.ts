// A bus and a platform whose Kafka is killed or stays away.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Delivery } from '@gpuwhisk/common/bus/message-bus';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { systemRandom } from '@gpuwhisk/common/system/random';
import { KafkaBus } from '@gpuwhisk/engines/kafka/kafka-bus';
import type { KafkaBusOptions } from '@gpuwhisk/engines/kafka/kafka-bus';
import { NotAcknowledgedError, SendBufferFullError } from '@gpuwhisk/engines/kafka/kafka-errors';
import { hasKafka, startKafka } from '../../../scripts/engines/kafka.mjs';
import type { RunningKafka } from '../../../scripts/engines/kafka.mjs';
import { newDataDir, removeDataDir, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

/** Whether the activation's start mark is on the disk. */
const isMarked = async (dataDir: string, activationId: string): Promise<boolean> => {
  const folder = join(dataDir, 'marks');
  const logs = await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name), 'utf8')));
  return logs.some((text) => text.includes(activationId));
};

const options = { durable: true, maxPendingMessages: 1_000_000, maxPendingBytes: 1e9 };
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

(hasKafka() ? describe : describe.skip)('Kafka that is killed', () => {
  let folder: string;
  let kafka: RunningKafka;
  let homes = 0;
  const buses = new Set<KafkaBus>();

  const openBus = (more: Partial<KafkaBusOptions> = {}): KafkaBus => {
    const connection = { brokers: [kafka.brokers], clientId: 'test', requestTimeoutMs: 2000 };
    const bus = new KafkaBus({ connection, topicPrefix: `home${homes}.`, ...seams, ...more });
    buses.add(bus);
    return bus;
  };
  const seams = { clock: systemClock, random: systemRandom };
  const restart = async (): Promise<void> => {
    kafka = await startKafka({ dir: folder, port: kafka.port });
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gpuwhisk-kafka-'));
    kafka = await startKafka({ dir: folder });
  }, 120_000);

  beforeEach(() => {
    homes++;
  });

  afterEach(async () => {
    await Promise.all([...buses].map((bus) => bus.close()));
    buses.clear();
  });

  afterAll(async () => {
    await kafka.kill();
    await rm(folder, { recursive: true, force: true });
  });

  test('nothing that was acknowledged is lost, and the order holds, when a broker is killed under traffic', async () => {
    const sender = openBus();
    const consumer = openBus();
    await sender.ensureTopic('t', options);
    await consumer.ensureTopic('t', options);
    const seen = new Set<number>();
    const firsts: number[] = [];
    await consumer.subscribe('t', 't', { maxInFlight: 50 }, (delivery) => {
      const n = delivery.message.n as number;
      if (!seen.has(n)) firsts.push(n);
      seen.add(n);
      setTimeout(() => delivery.done(), 2);
    });

    const acknowledged = new Set<number>();
    let refused = 0;
    let sending = true;
    const traffic = (async () => {
      const receipts: Promise<void>[] = [];
      for (let n = 0; sending; n++) {
        const receipt = sender.send('t', { n, text: 'x'.repeat(200) }).synced();
        receipts.push(
          receipt.then(
            () => void acknowledged.add(n),
            () => void refused++,
          ),
        );
        await pause(1);
      }
      await Promise.all(receipts);
    })();
    await until('traffic flows', () => firsts.length > 200);
    await kafka.kill();
    const atKill = acknowledged.size;
    await restart();
    await until('traffic flows again', () => acknowledged.size > atKill + 200, 30_000);
    sending = false;
    await traffic;
    await until('all is consumed', () => [...acknowledged].every((n) => seen.has(n)), 30_000);
    expect(refused).toBe(0);
    expect(firsts).toEqual([...firsts].sort((one, other) => one - other));
    await until('all is done', () => consumer.lag('t', 't') === 0);
  }, 120_000);

  test('while it stays away, what can be kept is kept, the rest is refused, and nobody waits for ever', async () => {
    const bus = openBus({ maxBufferedBytes: 100_000, sendTimeoutMs: { durable: 1500, inMemory: 1500 } });
    await bus.ensureTopic('t', options);
    const got: Delivery[] = [];
    await bus.subscribe('t', 't', { maxInFlight: 10 }, (delivery) => {
      got.push(delivery);
      delivery.done();
    });
    await bus.send('t', { n: 0 }).synced();
    await kafka.kill();
    const kept: Promise<void>[] = [];
    expect(() => {
      for (let n = 1; n < 10_000; n++) kept.push(bus.send('t', { n, text: 'x'.repeat(1000) }).synced());
    }).toThrow(SendBufferFullError);
    const outcomes = await Promise.allSettled(kept);
    // One topic may take half of the buffer; the other half is for other topics.
    expect(outcomes.length).toBeGreaterThan(45);
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(NotAcknowledgedError) });
    }
    // The buffer has space again, because the unacknowledged messages were dropped.
    const late = bus.send('t', { n: 'late' }).synced();
    await expect(late).rejects.toThrow('has not acknowledged it in time');
    await restart();
    const again = async (): Promise<boolean> => {
      try {
        await bus.send('t', { n: 'again' }).synced();
        return true;
      } catch {
        return false;
      }
    };
    await until('it takes messages again', again, 30_000);
    await until('they are consumed', () => got.some(({ message }) => message.n === 'again'), 30_000);
  }, 120_000);

  test('a bus that is closed meanwhile ends in time; what it had not done comes again', async () => {
    const bus = openBus({ closeTimeoutMs: 500 });
    await bus.ensureTopic('t', options);
    const got: Delivery[] = [];
    await bus.subscribe('t', 't', { maxInFlight: 10 }, (delivery) => got.push(delivery));
    for (let n = 0; n < 3; n++) await bus.send('t', { n }).synced();
    await until('they came', () => got.length === 3);
    await kafka.kill();
    got[0]?.done();
    const lost = bus.send('t', { n: 3 }).synced();
    const [outcome] = await Promise.allSettled([lost, bus.close()]);
    expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(NotAcknowledgedError) });
    await restart();
    const next = openBus();
    await next.ensureTopic('t', options);
    const again: Delivery[] = [];
    await next.subscribe('t', 't', { maxInFlight: 10 }, (delivery) => again.push(delivery));
    await until('they come again', () => again.length === 3, 30_000);
    expect(again.map(({ message, redelivered }) => [message.n, redelivered])).toEqual([
      [0, true],
      [1, true],
      [2, true],
    ]);
  }, 120_000);

  describe('under a platform', () => {
    const sleeper = `async function main({ ms }) {
      await new Promise((done) => setTimeout(done, ms));
      return { slept: ms };
    }`;
    const dataDir = newDataDir();
    let platform: RunningPlatform;
    const start = async (): Promise<void> => {
      const prefix = `kafka.topicPrefix="platform."`;
      const flags = ['--kafka', kafka.brokers, '--set', prefix, '--stem-cells', 'false', '--gateway-port', 'off'];
      platform = await startPlatform({ dataDir, flags });
    };

    afterAll(async () => {
      await platform.end('SIGTERM');
      removeDataDir(dataDir);
    });

    test('functions run while it is there, wait while it is not, and none is lost or run twice', async () => {
      await start();
      const { api } = platform;
      await api.putAction('sleeper', sleeper, { limits: { memory: 128 } });
      expect((await api.invokeForResult('sleeper', { ms: 1 })).body).toEqual({ slept: 1 });
      await kafka.kill();
      const waiting = Promise.all([1, 2, 3].map((ms) => api.submit('sleeper', { ms })));
      await pause(500);
      await restart();
      for (const id of await waiting) expect((await api.record(id)).response.success).toBe(true);

      const long = await api.submit('sleeper', { ms: 60_000 });
      await until('it has begun', () => isMarked(dataDir, long));
      const queued = await Promise.all(Array.from({ length: 20 }, () => api.submit('sleeper', { ms: 5 })));
      await platform.end('SIGKILL');
      await start();
      for (const id of queued) await platform.api.record(id);
      const record = await platform.api.record(long);
      expect(record.response.result).toEqual({ error: 'The invoker stopped while the action ran.' });
    }, 120_000);
  });
});
