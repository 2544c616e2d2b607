// Which failures acknowledged messages survive in a Kafka of three brokers.
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import type { Admin } from 'kafkajs';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { systemRandom } from '@gpuwhisk/common/system/random';
import { KafkaBus } from '@gpuwhisk/engines/kafka/kafka-bus';
import type { KafkaBusOptions } from '@gpuwhisk/engines/kafka/kafka-bus';
import { SendBufferFullError } from '@gpuwhisk/engines/kafka/kafka-errors';
import { hasKafka, startKafkas } from '../../../scripts/engines/kafka.mjs';
import type { RunningKafkas } from '../../../scripts/engines/kafka.mjs';
import { until } from '../support/running-platform.js';
import { syncedFiles } from './power-loss.js';
import type { SyncedFiles } from './power-loss.js';
import { hasCompiler } from './stepped-clocks.js';

const options = { durable: true, maxPendingMessages: 1_000_000, maxPendingBytes: 1e9 };
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Sends a message every `everyMs` until `stop`; `acknowledged` holds the numbers of the acknowledged messages. */
function traffic(bus: KafkaBus, topic: string, everyMs = 2) {
  const acknowledged = new Set<number>();
  const told = { refused: 0, longestGapMs: 0, acknowledged };
  let isSending = true;
  let lastMs = performance.now();
  const run = async (): Promise<void> => {
    const receipts: Promise<void>[] = [];
    for (let n = 0; isSending; n++) {
      const stored = (): void => {
        const nowMs = performance.now();
        told.longestGapMs = Math.max(told.longestGapMs, nowMs - lastMs);
        lastMs = nowMs;
        acknowledged.add(n);
      };
      receipts.push(
        bus
          .send(topic, { n, text: 'x'.repeat(200) })
          .synced()
          .then(stored, () => void told.refused++),
      );
      await pause(everyMs);
    }
    await Promise.all(receipts);
  };
  const ended = run();
  const stop = (): Promise<void> => {
    isSending = false;
    return ended;
  };
  return Object.assign(told, { stop });
}

(hasKafka() && hasCompiler ? describe : describe.skip)('Kafka of three brokers', () => {
  let folder: string;
  let kafka: RunningKafkas;
  let synced: SyncedFiles;
  let admin: Admin;
  const buses = new Set<KafkaBus>();

  const openBus = (more: Partial<KafkaBusOptions> = {}): KafkaBus => {
    const connection = { brokers: kafka.brokers.split(','), clientId: 'test', requestTimeoutMs: 4000 };
    const bus = new KafkaBus({
      ...{ connection, clock: systemClock, random: systemRandom, replicationFactor: 3 },
      ...more,
    });
    buses.add(bus);
    return bus;
  };
  /** Index of the broker that leads the topic, from 0. */
  const leaderOf = async (topic: string): Promise<number> => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
    return (topics[0]?.partitions[0]?.leader ?? 0) - 1;
  };
  /** All numbers in the topic, in order. */
  const contentOf = async (topic: string, count: number): Promise<number[]> => {
    const bus = openBus();
    await bus.ensureTopic(topic, options);
    const got: number[] = [];
    await bus.subscribe(topic, 'check', { maxInFlight: 1e6 }, ({ message }) => got.push(message.n as number));
    await until('all came', () => got.length >= count, 20_000).catch(() => undefined);
    return got;
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gpuwhisk-kafka-'));
    synced = syncedFiles(folder);
    kafka = await startKafkas({ dir: folder, count: 3, env: () => synced.env });
    admin = new Kafka({ brokers: kafka.brokers.split(','), logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
  }, 120_000);

  afterEach(async () => {
    await Promise.all([...buses].map((bus) => bus.close()));
    buses.clear();
  });

  afterAll(async () => {
    await admin.disconnect();
    await Promise.all(kafka.nodes.map((node) => node.kill()));
    await rm(folder, { recursive: true, force: true });
  });

  test('the leader of a topic is killed: nothing that was acknowledged is lost, and all goes on with two', async () => {
    const bus = openBus();
    await bus.ensureTopic('killed', options);
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: 2, name: 'killed', configNames: ['min.insync.replicas'] }],
    });
    expect(resources[0]?.configEntries[0]?.configValue).toBe('2');
    const sent = traffic(bus, 'killed');
    await until('traffic flows', () => sent.acknowledged.size > 200);
    const leader = await leaderOf('killed');
    await kafka.nodes[leader]?.kill();
    const atKill = sent.acknowledged.size;
    await until('traffic flows again', () => sent.acknowledged.size > atKill + 500, 30_000);
    await sent.stop();
    expect(sent.refused).toBe(0);
    const content = await contentOf('killed', sent.acknowledged.size);
    expect([...sent.acknowledged].filter((n) => !content.includes(n))).toEqual([]);
    expect(content).toEqual([...new Set(content)].sort((one, other) => one - other));
    await kafka.restart(leader);
  }, 120_000);

  test('a leader that hangs keeps topics of others neither waiting nor out of the buffer', async () => {
    const bus = openBus({ replicationFactor: 1, maxBufferedBytes: 400_000 });
    const led = new Map<number, string>();
    for (let n = 0; led.size < 3 && n < 30; n++) {
      await bus.ensureTopic(`lone${n}`, options);
      led.set(await leaderOf(`lone${n}`), `lone${n}`);
    }
    const [[, well], [broken, ill]] = [...led] as [[number, string], [number, string]];
    const first = traffic(bus, well);
    const second = traffic(bus, ill);
    await until('traffic flows', () => Math.min(first.acknowledged.size, second.acknowledged.size) > 100);
    await second.stop();
    first.longestGapMs = 0;
    const { pid } = kafka.nodes[broken] as { pid: number };
    process.kill(pid, 'SIGSTOP');
    try {
      const kept: Promise<void>[] = [];
      expect(() => {
        for (let n = 0; n < 10_000; n++) kept.push(bus.send(ill, { n, text: 'x'.repeat(1000) }).synced());
      }).toThrow(SendBufferFullError);
      // Long enough for two requests to the stopped broker to time out, with their connections.
      await pause(10_000);
      await first.stop();
      process.kill(pid, 'SIGCONT');
      await Promise.all(kept);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    expect(first.refused).toBe(0);
    expect(first.longestGapMs).toBeLessThan(1500);
  }, 120_000);

  test('power is lost everywhere: what was acknowledged is there, but where flush was off', async () => {
    const bus = openBus();
    const careless = openBus({ flush: false });
    await bus.ensureTopic('flushed', options);
    await careless.ensureTopic('unflushed', options);
    const sent = [traffic(bus, 'flushed'), traffic(careless, 'unflushed')] as const;
    await until('traffic flows', () => sent.every(({ acknowledged }) => acknowledged.size > 300));
    await Promise.all(kafka.nodes.map((node) => node.kill()));
    const [kept, lost] = sent.map(({ acknowledged }) => [...acknowledged]) as [number[], number[]];
    const lostBytes = [0, 1, 2].map((node) => synced.losePower(join(folder, `broker${node}`, 'data'), '.log'));
    expect(Math.min(...lostBytes)).toBeGreaterThan(300 * 200);
    await kafka.restart(0, 1, 2);
    await Promise.all(sent.map(({ stop }) => stop()));
    const content = new Set(await contentOf('flushed', kept.length));
    expect(kept.filter((n) => !content.has(n))).toEqual([]);
    // Checks the test itself: without flush, the power loss must have cost acknowledged messages.
    const rest = new Set(await contentOf('unflushed', 1));
    expect(lost.filter((n) => !rest.has(n)).length).toBeGreaterThan(100);
  }, 120_000);
});
