import { protocolErrorType } from './kafka-errors.js';
import type { KafkaLink } from './kafka-link.js';
import type { KafkaBroker } from './kafka-broker.js';

/** The setting that an operator may have raised. */
const largest = 'max.message.bytes';

export interface TopicSetup {
  /** With its prefix. */
  topic: string;
  replicationFactor: number;
  /** The settings of a topic that has so many copies of each message. */
  settings: (replicas: number) => Record<string, string>;
}

/** What was found of a topic that was there already. */
export interface FoundTopic {
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
