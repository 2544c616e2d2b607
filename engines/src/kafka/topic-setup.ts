import { protocolErrorType } from './kafka-errors.js';
import type { KafkaLink } from './kafka-link.js';
import type { KafkaBroker } from './kafka-broker.js';

/** The setting that an operator may have raised. */
const largest = 'max.message.bytes';

interface TopicSetup {
  /** With its prefix. */
  topic: string;
  replicationFactor: number;
  /** The settings of a topic that has so many copies of each message. */
  settings: (replicas: number) => Record<string, string>;
}

/** What was found of a topic that was there already. */
interface FoundTopic {
  replicas: number;
  /** Its settings could not be brought up to date. */
  notUpdated?: Error;
}

/**
 * Makes a topic of one partition. One that is there gets the settings that differ; its copies stay as many as they are.
 * Undefined: it was made. Rejects with what the client makes of the failure.
 */
export function setUpTopic(link: KafkaLink, setup: TopicSetup): Promise<FoundTopic | undefined> {
  return link.atController(async (broker) => {
    const { topic, replicationFactor, settings } = setup;
    try {
      await broker.createTopic(topic, replicationFactor, settings(replicationFactor));
      return undefined;
    } catch (error) {
      if (protocolErrorType(error) !== 'TOPIC_ALREADY_EXISTS') throw error;
    }
    const replicas = await replicasOf(broker, topic);
    try {
      await update(broker, topic, settings(replicas));
      return { replicas };
    } catch (error) {
      // A broker that answers, and does not let us: the topic serves as it is.
      if (protocolErrorType(error) === undefined) throw error;
      return { replicas, notUpdated: error as Error };
    }
  });
}

async function replicasOf(broker: KafkaBroker, topic: string): Promise<number> {
  const replicas = await broker.replicas(topic);
  if (replicas === undefined) throw new Error(`brokers do not tell where topic '${topic}' is`);
  return replicas;
}

/** Kafka replaces all settings of the topic by those it is given: others are given as they are. */
async function update(broker: KafkaBroker, topic: string, settings: Record<string, string>): Promise<void> {
  const found = await broker.topicSettings(topic);
  const now = new Map(found.map(({ name, value }) => [name, value]));
  const own = found.filter(({ isOwn }) => isOwn);
  const wanted = new Map(Object.entries(settings));
  if (Number(now.get(largest)) > Number(wanted.get(largest))) wanted.delete(largest);
  const isSet = ([name, value]: [string, string]): boolean =>
    own.some((entry) => entry.name === name && entry.value === value);
  if ([...wanted].every(isSet)) return;
  const kept = own.map(({ name, value }): [string, string] => [name, value]);
  await broker.setTopicSettings(topic, { ...Object.fromEntries(kept), ...Object.fromEntries(wanted) });
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const MiB = 1024 * 1024;

/** OpenWhisk's retention of topics whose messages are news: one that is read too late is of no use. */
const newsRetentionMs: readonly [prefix: string, ms: number][] = [
  ['cacheInvalidation', 5 * minuteMs],
  ['completed', hourMs],
  ['health', hourMs],
  ['events', hourMs],
];

/** The value with which brokers keep messages whatever their age, or however many there are. */
const unlimited = '-1';
/** Kafka's default of `flush.messages`: the operating system decides. */
const neverFlush = '9223372036854775807';

/** What the settings of a topic depend on. */
interface TopicShape {
  /** Without the prefix that all topics have. */
  name: string;
  /** Copies of each message, of which brokers may be one short. */
  replicas: number;
  /** A larger message is refused. */
  maxMessageBytes: number;
  /** Brokers acknowledge a message of a kept topic once it is on their disk. */
  flush: boolean;
}

/**
 * The settings of a topic, by Kafka's names.
 *
 * Kept topics have neither time nor size retention: a message that is in hand for days stays, and consumers delete what all
 * groups are done with. Their segments are small, because brokers give disk back a segment at a time. With three copies or
 * more a message is acknowledged once two brokers have it. The others have OpenWhisk's settings (`whisk.kafka.topics`).
 *
 * Brokers go by their own time: by that of senders they would refuse messages of one whose clock is an hour ahead, and delete
 * at once those of one that is far behind.
 */
export function topicSettings({ name, replicas, maxMessageBytes, flush }: TopicShape): Record<string, string> {
  const common = { 'max.message.bytes': String(maxMessageBytes), 'message.timestamp.type': 'LogAppendTime' };
  const retentionMs = newsRetentionMs.find(([prefix]) => name.startsWith(prefix))?.[1];
  if (retentionMs !== undefined) {
    return {
      ...common,
      'segment.bytes': String(512 * MiB),
      'retention.bytes': String(1024 * MiB),
      'retention.ms': String(retentionMs),
      'min.insync.replicas': '1',
    };
  }
  return {
    ...common,
    'segment.bytes': String(64 * MiB),
    'retention.bytes': unlimited,
    'retention.ms': unlimited,
    // All messages have one key: compaction would leave the last.
    'cleanup.policy': 'delete',
    'min.insync.replicas': replicas >= 3 ? '2' : '1',
    'unclean.leader.election.enable': 'false',
    'flush.messages': flush ? '1' : neverFlush,
  };
}
