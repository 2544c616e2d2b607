const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

const retentionMs: readonly [prefix: string, ms: number][] = [
  ['cacheInvalidation', 5 * minuteMs],
  ['completed', hourMs],
  ['health', hourMs],
  ['events', hourMs],
];

/** How long messages are kept in durable topics, ms: OpenWhisk's for topics of invokers. */
export const durableRetentionMs = 48 * hourMs;

/**
 * The settings that a topic is created with: OpenWhisk's of its application.conf (`whisk.kafka.topics`), and room for messages
 * of `maxMessageBytes`. `topic` is without the prefix that all have. Brokers go by their own time: by that of senders they would
 * refuse messages of one whose clock is an hour ahead, and delete at once those of one that is far behind.
 */
export function topicSettings(topic: string, maxMessageBytes: number): { name: string; value: string }[] {
  const retention = retentionMs.find(([prefix]) => topic.startsWith(prefix))?.[1] ?? durableRetentionMs;
  const settings = {
    'segment.bytes': 512 * 1024 * 1024,
    'retention.bytes': 1024 * 1024 * 1024,
    'retention.ms': retention,
    'max.message.bytes': maxMessageBytes,
    'message.timestamp.type': 'LogAppendTime',
  };
  return Object.entries(settings).map(([name, value]) => ({ name, value: String(value) }));
}
