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
export interface TopicShape {
  /** Without the prefix that all topics have. */
  name: string;
  /** Copies of each message, of which brokers may be one short. */
  replicas: number;
  /** A larger message is refused. */
  maxMessageBytes: number;
  /** Brokers acknowledge a message of a kept topic once it is on their disk. */
  flush: boolean;
}

/** Whether messages of the topic are kept until all groups are done with them, rather than for a time. */
export const isKept = (name: string): boolean => !newsRetentionMs.some(([prefix]) => name.startsWith(prefix));

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
