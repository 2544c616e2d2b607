import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import type { Receipt } from '@gpuwhisk/common/bus/message-bus';
import { backoffMs, Pace } from './pace.js';
import { NotAcknowledgedError, protocolErrorType } from './kafka-errors.js';
import type { KafkaLink } from './kafka-link.js';

/** The key of every message, as in OpenWhisk's KafkaProducerConnector. */
const messageKey = 'messages';
/** Messages of one request together, at most; one that is larger goes alone. */
const maxBatchBytes = 512 * 1024;
const maxBatchMessages = 2000;

/** What is stored is known twice: by the answer to the request, and by reading it. */
interface Batch {
  messages: Outgoing[];
  producer: Producer;
  firstSequence: number;
  stored: boolean;
}

/** By which brokers tell a request that is sent again from a new one. */
interface Producer {
  id: string;
  epoch: number;
  nextSequence: number;
}

/** Brokers have lost track of the producer, or it of what they have. */
const lostTrack = new Set([
  'OUT_OF_ORDER_SEQUENCE_NUMBER',
  'UNKNOWN_PRODUCER_ID',
  'INVALID_PRODUCER_EPOCH',
  'PRODUCER_FENCED',
  'INVALID_PRODUCER_ID_MAPPING',
]);

/** The request will not be taken, however often it is sent. */
const refused = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE', 'INVALID_RECORD', 'CORRUPT_MESSAGE']);

interface TopicWriterOptions {
  /** With its prefix. */
  topic: string;
  link: KafkaLink;
  clock: Clock;
  random: Random;
  /** These messages were stored, the first at `baseOffset`. */
  onStored: (messages: readonly Outgoing[], baseOffset: number) => void;
  /** These messages were given up. */
  onGivenUp: (messages: readonly Outgoing[], reason: Error) => void;
}

/**
 * Sends the messages of one topic in order: one request at a time, with all that has gathered meanwhile, again until it is
 * acknowledged by all replicas in step, or its time is up.
 */
export class TopicWriter {
  private queue: Outgoing[] = [];
  private batch: Batch | undefined;
  private producer: Producer | undefined;
  private running = false;
  private closed = false;
  private idle: (() => void) | undefined;
  private readonly pace: Pace;

  constructor(private readonly options: TopicWriterOptions) {
    this.pace = new Pace(options.clock);
  }

  add(message: Outgoing): void {
    this.queue.push(message);
    if (this.running) return;
    this.running = true;
    // What is sent in the same turn goes in one request.
    queueMicrotask(() => void this.run());
  }

  /** A reader has found messages of `producerId` from `firstSequence` on at `baseOffset`: the answer may come later. */
  confirm(producerId: string, firstSequence: number, baseOffset: number): void {
    const { batch } = this;
    if (batch?.producer.id === producerId && batch.firstSequence === firstSequence) this.stored(batch, baseOffset);
  }

  /** Waits up to `waitMs` until all is sent; what is not is given up. */
  async close(waitMs: number): Promise<void> {
    if (this.running) {
      const { clock } = this.options;
      await new Promise<void>((resolve) => {
        const timer = clock.setTimer(waitMs, resolve);
        this.idle = () => {
          timer.cancel();
          resolve();
        };
      });
    }
    this.closed = true;
    this.giveUp([...(this.batch?.messages ?? []), ...this.queue], new NotAcknowledgedError('the bus was closed'));
    this.batch = undefined;
    this.queue = [];
  }

  private async run(): Promise<void> {
    while (this.queue.length > 0 && !this.closed) {
      await this.pace.turn();
      const messages = this.takeBatch();
      this.pace.carried(messages.length);
      await this.deliver(messages);
    }
    this.running = false;
    this.idle?.();
  }

  private takeBatch(): Outgoing[] {
    let count = 0;
    let bytes = 0;
    for (const message of this.queue) {
      bytes += message.bytes;
      if (count > 0 && (bytes > maxBatchBytes || count === maxBatchMessages)) break;
      count++;
    }
    return this.queue.splice(0, count);
  }

  /** Ends once each of `messages` is stored or given up. */
  private async deliver(messages: Outgoing[]): Promise<void> {
    let batch: Batch | undefined;
    for (let attempt = 0; messages.length > 0 && !this.closed; attempt++) {
      try {
        batch ??= await this.begin(messages);
        await this.request(batch);
        return;
      } catch (error) {
        if (batch?.stored) return;
        const type = protocolErrorType(error) ?? '';
        if (refused.has(type)) return this.deliverEach(messages, error as Error);
        const inTime = this.expire(messages, error as Error);
        // Whether the request was carried out is not known, and what is sent next must not be taken for it.
        if (inTime.length < messages.length || lostTrack.has(type)) {
          messages = inTime;
          batch = this.batch = this.producer = undefined;
        }
        this.queue = this.expire(this.queue, error as Error);
      }
      if (messages.length > 0) await sleep(this.options.clock, backoffMs(attempt, this.options.random));
    }
  }

  /** One of `messages` is refused: the others are not. */
  private async deliverEach(messages: Outgoing[], error: Error): Promise<void> {
    this.batch = this.producer = undefined;
    if (messages.length === 1) this.giveUp(messages, error);
    else for (const message of messages) await this.deliver([message]);
  }

  private async begin(messages: Outgoing[]): Promise<Batch> {
    const producer = (this.producer ??= await this.newProducer());
    const { nextSequence } = producer;
    // Brokers count to 2^31 - 1 and go on at 0.
    producer.nextSequence = (nextSequence + messages.length) % 2 ** 31;
    return (this.batch = { messages, producer, firstSequence: nextSequence, stored: false });
  }

  private async newProducer(): Promise<Producer> {
    const { topic, link } = this.options;
    const made = await link.atLeader(topic, (broker) => broker.initProducerId());
    return { ...made, nextSequence: 0 };
  }

  private async request(batch: Batch): Promise<void> {
    const { topic, link } = this.options;
    const { producer, firstSequence } = batch;
    const values = batch.messages.map(({ value }) => value);
    const baseOffset = await link.atLeader(topic, (broker) =>
      broker.produce({ topic, producer, firstSequence, key: messageKey, values }),
    );
    this.stored(batch, baseOffset);
  }

  private stored(batch: Batch, baseOffset: number): void {
    if (batch.stored || this.closed) return;
    batch.stored = true;
    this.batch = undefined;
    for (const message of batch.messages) message.settle('stored');
    this.options.onStored(batch.messages, baseOffset);
  }

  /** Gives those up whose time is over; the others are the answer. */
  private expire(messages: Outgoing[], cause: Error): Outgoing[] {
    const nowMs = this.options.clock.monotonicMs();
    const late = messages.filter(({ deadlineMs }) => deadlineMs <= nowMs);
    if (late.length === 0) return messages;
    this.giveUp(late, new NotAcknowledgedError(`Kafka has not acknowledged it in time: ${cause.message}`, { cause }));
    return messages.filter(({ deadlineMs }) => deadlineMs > nowMs);
  }

  private giveUp(messages: readonly Outgoing[], reason: Error): void {
    if (messages.length === 0) return;
    for (const message of messages) message.settle(reason);
    this.options.onGivenUp(messages, reason);
  }
}

/** A message on its way to a broker. */
export class Outgoing implements Receipt {
  private outcome: 'stored' | Error | undefined;
  private promise: Promise<void> | undefined;
  private resolve: (() => void) | undefined;
  private reject: ((error: Error) => void) | undefined;

  constructor(
    readonly value: string,
    readonly bytes: number,
    /** When it is given up, on the clock that does not go back. */
    readonly deadlineMs: number,
  ) {}

  synced(): Promise<void> {
    if (this.promise) return this.promise;
    if (this.outcome === 'stored') this.promise = Promise.resolve();
    else if (this.outcome) this.promise = Promise.reject(this.outcome);
    else {
      this.promise = new Promise((resolve, reject) => {
        this.resolve = resolve;
        this.reject = reject;
      });
    }
    return this.promise;
  }

  /** It was stored, or will not be; the first of that counts. */
  settle(outcome: 'stored' | Error): void {
    if (this.outcome) return;
    this.outcome = outcome;
    if (outcome === 'stored') this.resolve?.();
    else this.reject?.(outcome);
  }
}
