import type { JsonObject } from '../json.js';

/** How a topic keeps its messages. */
export interface TopicOptions {
  /** Whether messages survive a restart until consumed. Others live in memory only. */
  durable: boolean;
  /** Messages sent and not yet consumed, at most; send throws TopicFullError beyond. */
  maxPendingMessages: number;
  /** Bytes (serialised) of such messages, at most. */
  maxPendingBytes: number;
}

/** Thrown by send when a topic holds as much as it may. */
export class TopicFullError extends Error {
  override name = 'TopicFullError';
  constructor(
    readonly topic: string,
    /** Messages that wait. */
    readonly pending: number,
    /** Messages that may wait. */
    readonly allowed: number,
  ) {
    super(`topic '${topic}' is full: ${pending} messages wait, ${allowed} may`);
  }
}

/** What send gives back at once. */
export interface Receipt {
  /** Resolves once the message would survive a power loss (at once for topics that are not durable); rejects if it cannot. */
  synced(): Promise<void>;
}

/** One message handed to a consumer. It stays pending until `done`. */
export interface Delivery {
  /** Position within the topic: rises by one or more from message to message. */
  readonly offset: number;
  /** Shared with the sender and other consumers: never modified by a consumer. */
  readonly message: JsonObject;
  /** Length in bytes of the serialised message. */
  readonly bytes: number;
  /** True if an earlier process of this consumer may have seen it. */
  readonly redelivered: boolean;
  /** The consumer needs the message no more. In any order; twice is once. */
  done(): void;
}

/** A running consumer. */
export interface Subscription {
  /** Changes how many messages may be with the handler at once; those in hand stay. */
  setMaxInFlight(count: number): void;
  /** Stops deliveries; what is not done is delivered again to the next subscriber. */
  close(): Promise<void>;
}

/** How a consumer takes messages. */
export interface ConsumerOptions {
  /** Messages with the handler and not done, at most. */
  maxInFlight: number;
}

/**
 * Topics with at-least-once delivery in order of sending.
 *
 * A consumer group gets every message from its first unfinished one on; after a restart those that were not
 * `done` (or whose done was not yet on disk) come again, marked redelivered. A message may be delivered before
 * it is synced; a sender that promises durability waits for its receipt.
 */
export interface MessageBus {
  /** Creates the topic if absent, and sets its options. */
  ensureTopic(topic: string, options: TopicOptions): Promise<void>;
  /**
   * Throws TopicFullError. The message must not be modified afterwards. `text` is the message as JSON, for senders that have
   * it at less than the cost of encoding.
   */
  send(topic: string, message: JsonObject, text?: string): Receipt;
  /** Starts the one consumer of `group`; the handler must not throw. */
  subscribe(
    topic: string,
    group: string,
    options: ConsumerOptions,
    handler: (delivery: Delivery) => void,
  ): Promise<Subscription>;
  /** Messages sent and not done by `group`. */
  lag(topic: string, group: string): number;
  close(): Promise<void>;
}
