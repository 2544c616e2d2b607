import type {
  ConsumerOptions,
  Delivery,
  MessageBus,
  Receipt,
  Subscription,
  TopicOptions,
} from '@gpuwhisk/common/bus/message-bus';
import type { JsonObject } from '@gpuwhisk/common/json';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { backoffMs } from './pace.js';
import { KafkaUnavailableError, isRefusal } from './kafka-errors.js';
import { KafkaLink } from './kafka-link.js';
import { KafkaTopic } from './kafka-topic.js';
import type { TopicContext } from './kafka-topic.js';
import type { KafkaClientName, KafkaConnection } from './kafka-broker.js';
import { topicSettings, setUpTopic } from './topic-setup.js';

export interface KafkaBusOptions {
  /** How brokers are reached; `requestTimeoutMs` is 10 seconds where it is absent. */
  connection: Omit<KafkaConnection, 'requestTimeoutMs'> & { requestTimeoutMs?: number };
  /** The library that speaks with brokers; default: platformatic. */
  client?: KafkaClientName;
  clock: Clock;
  random: Random;
  /** Put before the names of all topics and groups, as OpenWhisk's `whisk.kafka.topics.prefix`. */
  topicPrefix?: string;
  /** Copies of each message in the cluster, for topics that are created; default 1. */
  replicationFactor?: number;
  /** Brokers acknowledge a durable message once it is on their disk, not only in their memory; default true. */
  flush?: boolean;
  /** A larger message is refused; default 5 MiB. Topics are created with room for it. */
  maxMessageBytes?: number;
  /** Bytes of messages that no broker has acknowledged, of all topics together; default 64 MiB. More are refused. */
  maxBufferedBytes?: number;
  /** A message is given up that is not acknowledged so long after it was sent, ms; default 30 s, 120 s in topics that are not durable. */
  sendTimeoutMs?: { durable: number; inMemory: number };
  /** How long brokers may be away when a topic is made, and when the bus is closed; default 30 s and 5 s. */
  openTimeoutMs?: number;
  closeTimeoutMs?: number;
  /** Durable messages that all groups are done with are deleted so often; default 10 s. */
  trimMs?: number;
  /** Brokers have answered a fetch from the topic: they do every two seconds while it is consumed. */
  onAnswer?: (topic: string) => void;
  /** What `onCommitted` is told of a message; absent: its `activationId`. */
  idOf?: TopicContext['idOf'];
  /** A durable message with an id was done by a group of this process, and will not come again. */
  onCommitted?: TopicContext['onCommitted'];
  /** A message that is no JSON object, and was skipped. */
  onMalformed?: TopicContext['onMalformed'];
  /** Messages `from` ≤ offset < `to` are not in Kafka any more, and were not consumed. */
  onLost?: TopicContext['onLost'];
  /** Something failed that is tried again, or a message was given up whose sender may not wait for its receipt. */
  onTrouble?: TopicContext['onTrouble'];
}

const MiB = 1024 * 1024;
const activationIdOf = ({ activationId }: JsonObject): string | undefined =>
  typeof activationId === 'string' ? activationId : undefined;
/** How often it is asked what groups elsewhere have done. */
const refreshMs = 1000;

/**
 * Topics in Kafka, one partition each, so that all messages of a topic are in order. A group's place is committed under its
 * name without the group protocol: that it has one consumer is settled by who is given which name.
 *
 * Messages are delivered once a broker has them. What is done out of order is remembered with the committed offset, as far as
 * it has room (4096 characters); beyond that a message may come again after a restart. While commits fail 50,000 messages
 * of a group may become done; no more are delivered until that is committed. Limits count what this process knows:
 * what groups elsewhere have done is asked once a second.
 */
export class KafkaBus implements MessageBus {
  private readonly topics = new Map<string, KafkaTopic>();
  private readonly context: TopicContext;
  /** For topics that are made. */
  private readonly control: KafkaLink;
  private readonly refreshTimers = new Map<KafkaTopic, Timer>();
  private closing: Promise<void> | undefined;

  constructor(private readonly options: KafkaBusOptions) {
    const { clock, random, idOf = activationIdOf, onCommitted, onMalformed, onLost, onTrouble } = options;
    const requestTimeoutMs = options.connection.requestTimeoutMs ?? 10_000;
    const openLink = (): KafkaLink =>
      new KafkaLink({ ...options.connection, requestTimeoutMs }, options.client ?? 'platformatic');
    this.control = openLink();
    this.context = {
      ...{ clock, random, openLink, requestTimeoutMs },
      maxMessageBytes: options.maxMessageBytes ?? 5 * MiB,
      buffer: { bytes: 0, maxBytes: options.maxBufferedBytes ?? 64 * MiB },
      sendTimeoutMs: options.sendTimeoutMs ?? { durable: 30_000, inMemory: 120_000 },
      trimMs: options.trimMs ?? 10_000,
      onAnswer: (topic) => options.onAnswer?.(topic),
      idOf,
      onCommitted: (id) => onCommitted?.(id),
      onMalformed: (...args) => onMalformed?.(...args),
      onLost: (...args) => onLost?.(...args),
      onTrouble: (...args) => {
        if (this.closing === undefined) onTrouble?.(...args);
      },
    };
  }

  /** Rejects with KafkaUnavailableError. */
  async ensureTopic(name: string, options: TopicOptions): Promise<void> {
    this.checkOpen();
    const known = this.topics.get(name);
    if (known) {
      known.options = options;
      return;
    }
    const fullName = (this.options.topicPrefix ?? '') + name;
    const topic = new KafkaTopic(name, fullName, options, this.context);
    try {
      await this.tryUntilOpen(async () => {
        await this.setUp(name, fullName);
        await topic.open();
      });
    } catch (error) {
      topic.disconnect();
      throw error;
    }
    // It may have been asked for twice.
    if (this.closing !== undefined || this.topics.has(name)) topic.disconnect();
    this.checkOpen();
    if (this.topics.has(name)) return;
    this.topics.set(name, topic);
    this.setRefreshTimer(name, topic);
  }

  send(topic: string, message: JsonObject, text?: string): Receipt {
    return this.topic(topic).send(message, text);
  }

  /** Rejects with KafkaUnavailableError. */
  async subscribe(
    name: string,
    group: string,
    { maxInFlight }: ConsumerOptions,
    handler: (delivery: Delivery) => void,
  ): Promise<Subscription> {
    const topic = this.topic(name);
    await this.tryUntilOpen(() => topic.prepare(group));
    this.checkOpen();
    return topic.subscribe(group, maxInFlight, handler);
  }

  lag(topic: string, group: string): number {
    return this.topics.get(topic)?.lag(group) ?? 0;
  }

  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  private async end(): Promise<void> {
    for (const refresh of this.refreshTimers.values()) refresh.cancel();
    const { clock } = this.context;
    const waitMs = this.options.closeTimeoutMs ?? 5000;
    const closed = Promise.all([...this.topics.values()].map((topic) => topic.close(waitMs)));
    let timer: Timer | undefined;
    await Promise.race([
      closed,
      new Promise<void>((resolve) => {
        timer = clock.setTimer(waitMs, resolve);
      }),
    ]);
    timer?.cancel();
    for (const topic of this.topics.values()) topic.disconnect();
    this.control.close();
    await closed;
  }

  private checkOpen(): void {
    if (this.closing) throw new Error('the bus is closed');
  }

  private topic(name: string): KafkaTopic {
    this.checkOpen();
    const topic = this.topics.get(name);
    if (!topic) throw new Error(`there is no topic '${name}'`);
    return topic;
  }

  /** Makes the topic, or brings its settings up to date. */
  private async setUp(name: string, topic: string): Promise<void> {
    const { replicationFactor = 1, flush = true } = this.options;
    const { maxMessageBytes, onTrouble } = this.context;
    const found = await setUpTopic(this.control, {
      ...{ topic, replicationFactor },
      settings: (replicas) => topicSettings({ name, replicas, maxMessageBytes, flush }),
    });
    if (found === undefined) return;
    if (found.notUpdated) {
      const { message } = found.notUpdated;
      onTrouble(name, new Error(`the settings of topic '${topic}' could not be brought up to date: ${message}`));
    }
    if (found.replicas < replicationFactor) {
      const text = `topic '${topic}' has ${found.replicas} copies of each message, not ${replicationFactor} (kafka.replicationFactor)`;
      onTrouble(name, new Error(`${text}: add replicas with kafka-reassign-partitions.sh`));
    }
  }

  private async tryUntilOpen(run: () => Promise<void>): Promise<void> {
    const { clock, random } = this.context;
    const untilMs = clock.monotonicMs() + (this.options.openTimeoutMs ?? 30_000);
    for (let attempt = 0; ; attempt++) {
      try {
        return await run();
      } catch (cause) {
        const waitMs = backoffMs(attempt, random);
        if (this.closing || isRefusal(cause) || clock.monotonicMs() + waitMs > untilMs) {
          const { brokers } = this.options.connection;
          const reason = (cause as Error).message;
          throw new KafkaUnavailableError(`Kafka at ${brokers.join(', ')} cannot be used: ${reason}`, { cause });
        }
        await sleep(clock, waitMs);
      }
    }
  }

  /** Each topic by itself: one whose leader is gone holds up no other. */
  private setRefreshTimer(name: string, topic: KafkaTopic): void {
    const refresh = async (): Promise<void> => {
      try {
        await topic.refresh();
      } catch (error) {
        this.context.onTrouble(name, error as Error);
      }
      if (!this.closing) this.setRefreshTimer(name, topic);
    };
    this.refreshTimers.set(
      topic,
      this.context.clock.setBackgroundTimer(refreshMs, () => void refresh()),
    );
  }
}
