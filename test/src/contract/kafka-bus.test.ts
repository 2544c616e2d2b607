import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import type { Admin } from 'kafkajs';
import type { Delivery } from '@gpuwhisk/common/bus/message-bus';
import type { JsonObject } from '@gpuwhisk/common/json';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { systemRandom } from '@gpuwhisk/common/system/random';
import { KafkaBus } from '@gpuwhisk/engines/kafka/kafka-bus';
import { hasKafka, startKafka } from '../../../scripts/engines/kafka.mjs';
import type { RunningKafka } from '../../../scripts/engines/kafka.mjs';
import { testMessageBus } from './message-bus.js';
import { testUserEvents } from './user-events.js';
import { until } from '../support/running-platform.js';

(hasKafka() ? describe : describe.skip).each(['platformatic', 'kafkajs'] as const)('Kafka, by %s', (library) => {
  let folder: string;
  let kafka: RunningKafka;
  let homes = 0;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gpuwhisk-kafka-'));
    kafka = await startKafka({ dir: folder });
  }, 120_000);

  afterAll(async () => {
    await kafka.kill();
    await rm(folder, { recursive: true, force: true });
  });

  testMessageBus('the Kafka bus', () => {
    const topicPrefix = `home${++homes}.`;
    const connection = { brokers: [kafka.brokers], clientId: 'test' };
    return Promise.resolve({
      handsOverObjects: false,
      sharesGroups: true,
      open: () => {
        const bus = new KafkaBus({
          client: library,
          connection,
          topicPrefix,
          clock: systemClock,
          random: systemRandom,
        });
        return Promise.resolve({ bus, close: () => bus.close() });
      },
      remove: () => Promise.resolve(),
    });
  });

  testUserEvents('the Kafka bus', () => {
    const connection = { brokers: [kafka.brokers], clientId: 'test' };
    const topicPrefix = `home${++homes}.`;
    const bus = new KafkaBus({ client: library, connection, topicPrefix, clock: systemClock, random: systemRandom });
    return Promise.resolve({ bus, close: () => bus.close() });
  });

  describe('beside other clients', () => {
    const durable = { durable: true, maxPendingMessages: 1000, maxPendingBytes: 1e6 };
    const seams = { clock: systemClock, random: systemRandom };
    let client: Kafka;
    let topicPrefix: string;
    let bus: KafkaBus;
    let malformed: string[];
    let got: Delivery[];
    /** More buses of a test, closed after it. */
    const others: KafkaBus[] = [];

    const open = (): KafkaBus =>
      new KafkaBus({
        client: library,
        ...seams,
        connection: { brokers: [kafka.brokers], clientId: 'test' },
        topicPrefix,
        onMalformed: (topic, _offset, reason) => malformed.push(`${topic}: ${reason}`),
      });

    const takeAll = async (): Promise<void> => {
      got = [];
      await bus.subscribe('invoker0', 'invoker0', { maxInFlight: 10 }, (delivery) => {
        got.push(delivery);
        delivery.done();
      });
    };
    const produce = async (...values: (string | null)[]): Promise<void> => {
      const producer = client.producer();
      await producer.connect();
      const messages = values.map((value) => ({ key: 'messages', value }));
      await producer.send({ topic: `${topicPrefix}invoker0`, messages });
      await producer.disconnect();
    };

    beforeEach(async () => {
      topicPrefix = `home${++homes}.`;
      malformed = [];
      client = new Kafka({ brokers: [kafka.brokers], logLevel: logLevel.NOTHING });
      bus = open();
      await bus.ensureTopic('invoker0', durable);
    });

    afterEach(async () => {
      await Promise.all([bus, ...others].map((one) => one.close()));
      others.length = 0;
    });

    test('what is no JSON object is skipped, counted and done, and does not hold up what follows', async () => {
      await takeAll();
      await produce('{"n":1}', 'no JSON', null, '[1]', '7', '{"n":2}', '{"cut":');
      await until('the good ones came', () => got.length === 2);
      await until('all are done', () => bus.lag('invoker0', 'invoker0') === 0);
      expect(got.map(({ message }) => message.n)).toEqual([1, 2]);
      expect(malformed.map((line) => line.split(':')[0])).toEqual(Array(5).fill('invoker0'));
      expect(malformed).toContain('invoker0: it is no JSON object');
      await bus.close();
      bus = open();
      await bus.ensureTopic('invoker0', durable);
      expect(bus.lag('invoker0', 'invoker0')).toBe(0);
    });

    test('other consumers find messages under the key and in the JSON that OpenWhisk uses', async () => {
      const message: JsonObject = { transid: ['t', 1], text: 'ünïcödé' };
      await bus.send('invoker0', message).synced();
      const consumer = client.consumer({ groupId: `${topicPrefix}other` });
      await consumer.connect();
      await consumer.subscribe({ topic: `${topicPrefix}invoker0`, fromBeginning: true });
      const found: [string | undefined, string | undefined][] = [];
      await consumer.run({
        eachMessage: ({ message: { key, value } }) => {
          found.push([key?.toString(), value?.toString()]);
          return Promise.resolve();
        },
      });
      await until('it came', () => found.length > 0);
      await consumer.disconnect();
      expect(found).toEqual([['messages', JSON.stringify(message)]]);
    });

    describe('settings of topics', () => {
      let admin: Admin;

      beforeEach(async () => {
        admin = client.admin();
        await admin.connect();
      });

      afterEach(() => admin.disconnect());

      const settingsOf = async (topic: string, ...configNames: string[]): Promise<Record<string, string>> => {
        const { resources } = await admin.describeConfigs({
          includeSynonyms: false,
          resources: [{ type: 2, name: topicPrefix + topic, configNames }],
        });
        const entries = resources[0]?.configEntries ?? [];
        return Object.fromEntries(entries.map(({ configName, configValue }) => [configName, configValue]));
      };
      const kept = {
        'retention.ms': '-1',
        'retention.bytes': '-1',
        'flush.messages': '1',
        'min.insync.replicas': '1',
        'unclean.leader.election.enable': 'false',
      };

      test('topics have one partition; what waits is kept without limit, news as long as OpenWhisk keeps them', async () => {
        await bus.ensureTopic('cacheInvalidation', { ...durable, durable: false });
        await bus.ensureTopic('completed0', { ...durable, durable: false });
        expect(await settingsOf('invoker0', ...Object.keys(kept))).toEqual(kept);
        const news = ['retention.ms', 'retention.bytes', 'segment.bytes'];
        const sizes = { 'retention.bytes': '1073741824', 'segment.bytes': '536870912' };
        expect(await settingsOf('completed0', ...news)).toEqual({ 'retention.ms': '3600000', ...sizes });
        expect(await settingsOf('cacheInvalidation', ...news)).toEqual({ 'retention.ms': '300000', ...sizes });
        const { topics } = await admin.fetchTopicMetadata({ topics: [`${topicPrefix}invoker0`] });
        expect(topics[0]?.partitions).toHaveLength(1);
      });

      test('those of a topic that is there are brought up to date, others that it has stay', async () => {
        const configEntries = [
          { name: 'retention.ms', value: '172800000' },
          { name: 'retention.bytes', value: '1073741824' },
          { name: 'max.message.bytes', value: '9000000' },
          { name: 'compression.type', value: 'lz4' },
        ];
        await admin.createTopics({ topics: [{ topic: `${topicPrefix}invoker1`, numPartitions: 1, configEntries }] });
        await bus.ensureTopic('invoker1', durable);
        const more = { 'max.message.bytes': '9000000', 'compression.type': 'lz4' };
        expect(await settingsOf('invoker1', ...Object.keys({ ...kept, ...more }))).toEqual({ ...kept, ...more });
      });
    });

    test('what all groups are done with is deleted, and what is in hand stays', async () => {
      await bus.close();
      const inHand: Delivery[] = [];
      const trimming = new KafkaBus({
        client: library,
        ...seams,
        connection: { brokers: [kafka.brokers], clientId: 'test' },
        topicPrefix,
        trimMs: 500,
      });
      bus = trimming;
      await bus.ensureTopic('invoker0', durable);
      await bus.subscribe('invoker0', 'invoker0', { maxInFlight: 10 }, (delivery) => {
        if (delivery.message.n === 2) inHand.push(delivery);
        else delivery.done();
      });
      const watcher = open();
      others.push(watcher);
      await watcher.ensureTopic('invoker0', durable);
      const slow: Delivery[] = [];
      await watcher.subscribe('invoker0', 'watcher', { maxInFlight: 10 }, (delivery) => slow.push(delivery));
      for (let n = 0; n < 6; n++) await bus.send('invoker0', { n }).synced();
      const oldest = async (): Promise<number> => {
        const admin = client.admin();
        await admin.connect();
        const [offsets] = await admin.fetchTopicOffsets(`${topicPrefix}invoker0`);
        await admin.disconnect();
        return Number(offsets?.low);
      };
      await until('all came', () => slow.length === 6 && bus.lag('invoker0', 'invoker0') === 1);
      slow[0]?.done();
      await until('what both have done is gone', async () => (await oldest()) === 1);
      for (const delivery of slow) delivery.done();
      await until('what is before the one in hand is gone', async () => (await oldest()) === 2);
      // Long enough for three deletions.
      await new Promise((resolve) => setTimeout(resolve, 1500));
      expect(await oldest()).toBe(2);
      await watcher.close();
      inHand[0]?.done();
      await until('all is gone', async () => (await oldest()) === 6);
    });

    test('a group that brokers have forgotten gets what is left as what it may have seen', async () => {
      for (let n = 0; n < 3; n++) await bus.send('invoker0', { n }).synced();
      const admin = client.admin();
      await admin.connect();
      await admin.fetchTopicOffsets(`${topicPrefix}invoker0`);
      await admin.deleteTopicRecords({
        topic: `${topicPrefix}invoker0`,
        partitions: [{ partition: 0, offset: '1' }],
      });
      await admin.disconnect();
      await bus.close();
      bus = open();
      await bus.ensureTopic('invoker0', durable);
      await takeAll();
      await until('they came', () => got.length === 2);
      expect(got.map(({ message, redelivered }) => [message.n, redelivered])).toEqual([
        [1, true],
        [2, true],
      ]);
    });

    test('a sender elsewhere learns how far the consumer is', async () => {
      const sender = open();
      await sender.ensureTopic('invoker0', { ...durable, maxPendingMessages: 5 });
      for (let n = 0; n < 5; n++) await sender.send('invoker0', { n }).synced();
      expect(() => sender.send('invoker0', { n: 5 })).toThrow('is full: 5 messages wait, 5 may');
      await takeAll();
      await until('it learnt of it', () => sender.lag('invoker0', 'invoker0') === 0);
      await sender.send('invoker0', { n: 5 }).synced();
      await sender.close();
    });

    test('a group that another process consumed meanwhile goes on where that one stopped, and nothing done is taken back', async () => {
      const other = open();
      await other.ensureTopic('invoker0', durable);
      const first: Delivery[] = [];
      const subscription = await bus.subscribe('invoker0', 'invoker0', { maxInFlight: 2 }, (delivery) =>
        first.push(delivery),
      );
      for (let n = 0; n < 3; n++) await bus.send('invoker0', { n }).synced();
      await until('two came', () => first.length === 2);
      await subscription.close();

      const second: Delivery[] = [];
      const others = await other.subscribe('invoker0', 'invoker0', { maxInFlight: 10 }, (delivery) => {
        second.push(delivery);
        delivery.done();
      });
      await other.send('invoker0', { n: 3 }).synced();
      await until('the other process has got all', () => second.length === 4);
      await others.close();
      await other.close();
      // A late acknowledgement, after the other bus has committed a higher offset.
      first[0]?.done();
      await takeAll();
      await bus.send('invoker0', { n: 4 }).synced();
      await until('what is new came', () => got.length > 0);
      expect(got.map(({ message, redelivered }) => [message.n, redelivered])).toEqual([[4, false]]);
      expect(bus.lag('invoker0', 'invoker0')).toBe(0);
      await bus.close();
      bus = open();
      await bus.ensureTopic('invoker0', durable);
      expect(bus.lag('invoker0', 'invoker0')).toBe(0);
    });

    test('a late done of one who consumes no more takes back nothing that others have committed', async () => {
      const first: Delivery[] = [];
      const subscription = await bus.subscribe('invoker0', 'invoker0', { maxInFlight: 1 }, (delivery) =>
        first.push(delivery),
      );
      for (let n = 0; n < 3; n++) await bus.send('invoker0', { n }).synced();
      await until('one came', () => first.length === 1);
      await subscription.close();
      const other = open();
      await other.ensureTopic('invoker0', durable);
      await other.subscribe('invoker0', 'invoker0', { maxInFlight: 10 }, (delivery) => delivery.done());
      await until('the other has done all', () => other.lag('invoker0', 'invoker0') === 0);
      await other.close();
      first[0]?.done();
      await bus.close();
      bus = open();
      await bus.ensureTopic('invoker0', durable);
      expect(bus.lag('invoker0', 'invoker0')).toBe(0);
    });

    test('bytes that were done elsewhere make room, also behind a message that is long in hand', async () => {
      const sender = open();
      await sender.ensureTopic('invoker0', { ...durable, maxPendingBytes: 1000 });
      const text = 'x'.repeat(400);
      const held: Delivery[] = [];
      await bus.subscribe('invoker0', 'invoker0', { maxInFlight: 10 }, (delivery) => {
        if (held.push(delivery) > 1) delivery.done();
      });
      for (let n = 0; n < 2; n++) await sender.send('invoker0', { n, text }).synced();
      expect(() => sender.send('invoker0', { n: 2, text })).toThrow('is full');
      const hasRoom = (): boolean => {
        try {
          sender.send('invoker0', { n: 2, text });
          return true;
        } catch {
          return false;
        }
      };
      await until('there is room again', hasRoom);
      await sender.close();
    });

    test('messages that retention deletes before they are read are reported, and the rest comes', async () => {
      for (let n = 0; n < 5; n++) await bus.send('invoker0', { n }).synced();
      await bus.subscribe('invoker0', 'invoker0', { maxInFlight: 0 }, () => undefined);
      await bus.close();
      const admin = client.admin();
      await admin.connect();
      // Makes kafkajs look up the topic's leader; deleteTopicRecords does not.
      await admin.fetchTopicOffsets(`${topicPrefix}invoker0`);
      const partitions = [{ partition: 0, offset: '3' }];
      await admin.deleteTopicRecords({ topic: `${topicPrefix}invoker0`, partitions });
      await admin.disconnect();
      const lost: [number, number][] = [];
      bus = new KafkaBus({
        client: library,
        ...seams,
        connection: { brokers: [kafka.brokers], clientId: 'test' },
        topicPrefix,
        onLost: (_topic, from, to) => lost.push([from, to]),
      });
      await bus.ensureTopic('invoker0', durable);
      await takeAll();
      await until('the rest came', () => got.length === 2);
      expect(got.map(({ message }) => message.n)).toEqual([3, 4]);
      expect(lost).toEqual([[0, 3]]);
      await until('all is done', () => bus.lag('invoker0', 'invoker0') === 0);
    });
  });
});

test('brokers that are not there are named', async () => {
  const connection = { brokers: ['127.0.0.1:9', '127.0.0.1:10'], clientId: 'test' };
  const bus = new KafkaBus({ connection, clock: systemClock, random: systemRandom, openTimeoutMs: 200 });
  const topic = bus.ensureTopic('t', { durable: true, maxPendingMessages: 1, maxPendingBytes: 1 });
  await expect(topic).rejects.toThrow('Kafka at 127.0.0.1:9, 127.0.0.1:10 cannot be used: ');
  await bus.close();
});
