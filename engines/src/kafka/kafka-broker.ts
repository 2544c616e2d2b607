import type { ConnectionOptions } from 'node:tls';

/** How brokers are reached. */
export interface KafkaConnection {
  /** `host:port` of some brokers; the others are learnt from them. */
  brokers: readonly string[];
  /** What brokers call this client in their logs. */
  clientId: string;
  /** A request without an answer is given up after so long. */
  requestTimeoutMs: number;
  ssl?: ConnectionOptions;
  sasl?: KafkaLogin;
}

/** How this process says to brokers who it is. */
export interface KafkaLogin {
  mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512';
  username: string;
  password: string;
}

/** A record of a fetch. */
export interface KafkaRecord {
  offset: number;
  value: Buffer | null;
  isControl: boolean;
  /** The batch that the record was sent in; all its records have the same object. */
  batch: { firstOffset: number; producerId: string; firstSequence: number };
}

/** A setting of a topic. */
export interface TopicSetting {
  name: string;
  value: string;
  /** Whether it was set for this topic, and is no default. */
  isOwn: boolean;
}

/**
 * A broker, with the requests of Kafka's protocol that the bus needs. Topics have one partition. Requests are sent once, and
 * reject where the broker does not answer in time or refuses; protocolErrorType tells Kafka's name of a refusal.
 */
export interface KafkaBroker {
  isConnected(): boolean;
  /** Resolves with the offset of the first message; -1 if the broker had them already. */
  produce(request: {
    topic: string;
    producer: { id: string; epoch: number };
    firstSequence: number;
    key: string;
    values: readonly string[];
  }): Promise<number>;
  initProducerId(): Promise<{ id: string; epoch: number }>;
  fetch(request: {
    topic: string;
    offset: number;
    maxWaitMs: number;
    maxBytes: number;
  }): Promise<{ records: KafkaRecord[]; end: number }>;
  /** The offset of the oldest message that is kept, or of the next to come. */
  offsetAt(topic: string, place: 'start' | 'end'): Promise<number>;
  /** What a group has committed; the offset is -1 if it has committed nothing. */
  committed(topic: string, group: string): Promise<{ offset: number; metadata: string }>;
  /** Commits for a group that has no members. */
  commit(topic: string, group: string, offset: number, metadata: string): Promise<void>;
  deleteBelow(topic: string, offset: number): Promise<void>;
  /** The ids of the groups that this broker coordinates. */
  groups(): Promise<string[]>;
  createTopic(topic: string, replicationFactor: number, settings: Readonly<Record<string, string>>): Promise<void>;
  /** How many copies of each message the topic has; undefined if the broker does not tell. */
  replicas(topic: string): Promise<number | undefined>;
  topicSettings(topic: string): Promise<TopicSetting[]>;
  /** Replaces all settings of the topic by these. */
  setTopicSettings(topic: string, settings: Readonly<Record<string, string>>): Promise<void>;
}

/** Connections to the brokers of a cluster, each made when it is first needed. */
export interface KafkaCluster {
  /** Connects to one of the known brokers, and learns the others. */
  connect(): Promise<void>;
  /** The broker that leads the only partition of the topic. */
  leader(topic: string): Promise<KafkaBroker>;
  /** The broker that keeps the offsets of the group. */
  coordinator(group: string): Promise<KafkaBroker>;
  /** The broker that may create topics. */
  controller(): Promise<KafkaBroker>;
  all(): Promise<KafkaBroker[]>;
  /** Ends all connections; what was asked and not answered rejects with this error. */
  destroy(error: Error): void;
}

/** Makes the connections by a client library. */
export type KafkaClient = (connection: KafkaConnection) => KafkaCluster;

/** The client libraries by which brokers can be reached. */
export type KafkaClientName = 'platformatic' | 'kafkajs';

/** Loads one of them: a process without Kafka is spared their time and memory. */
export async function loadKafkaClient(name: KafkaClientName): Promise<KafkaClient> {
  if (name === 'kafkajs') return (await import('./kafkajs-cluster.js')).kafkajsCluster;
  return (await import('./platformatic-cluster.js')).platformaticCluster;
}
