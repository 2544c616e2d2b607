import { TopicFullError } from '@gpuwhisk/common/bus/message-bus';
import type { Delivery, Receipt, Subscription, TopicOptions } from '@gpuwhisk/common/bus/message-bus';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { MessageTooLargeError, SendBufferFullError } from './kafka-errors.js';
import { KafkaGroup } from './kafka-group.js';
import type { KafkaLink } from './kafka-link.js';
import type { KafkaRecord } from './kafka-broker.js';
import { Outgoing, TopicWriter } from './topic-writer.js';
import { commit, deleteBelow, fetchCommitted, groupsOf, logEnd, logStart } from './topic-offsets.js';

/** What all topics of a bus share. */
export interface TopicContext {
  clock: Clock;
  random: Random;
  openLink: () => KafkaLink;
  requestTimeoutMs: number;
  maxMessageBytes: number;
  /** Of all messages that no broker has acknowledged. */
  buffer: { bytes: number; readonly maxBytes: number };
  /** A message is given up that is not acknowledged so long after it was sent, ms. */
  sendTimeoutMs: { durable: number; inMemory: number };
  /** Messages that all groups are done with are deleted so often. */
  trimMs: number;
  /** Brokers have answered a fetch. */
  onAnswer: (topic: string) => void;
  /** What `onCommitted` is told of a message; undefined: nothing. */
  idOf: (message: JsonObject) => string | undefined;
  /** That a group of this process is done with a message of a durable topic is committed. */
  onCommitted: (id: string) => void;
  onMalformed: (topic: string, offset: number, reason: string) => void;
  onLost: (topic: string, from: number, to: number) => void;
  onTrouble: (topic: string, error: Error) => void;
}

const inMemoryReceipt: Receipt = { synced: () => Promise.resolve() };

/** Brokers forget a group that has committed nothing for `offsets.retention.minutes`, a week by default. */
const commitAgainMs = 3_600_000;

/**
 * One topic of one partition: what this process sends there, and what it knows of the groups that consume it. Its connections
 * are its own: those of a topic whose leader is gone are given up again and again.
 */
export class KafkaTopic {
  private readonly writer: TopicWriter;
  /** By what brokers call them. */
  private readonly groups = new Map<string, KafkaGroup>();
  private readonly stored = new PendingBytes();
  private unconfirmedMessages = 0;
  private unconfirmedBytes = 0;
  /** A group that is new begins here. */
  private start = 0;
  private end = 0;
  /** For messages that are sent. */
  private readonly produce: KafkaLink;
  /** For everything else but reading. */
  private readonly control: KafkaLink;
  private trimAtMs: number;
  private commitAgainAtMs: number;

  constructor(
    /** Without the prefix. */
    private readonly name: string,
    /** With it. */
    private readonly topic: string,
    public options: TopicOptions,
    private readonly context: TopicContext,
  ) {
    const nowMs = context.clock.monotonicMs();
    this.trimAtMs = nowMs + context.trimMs;
    this.commitAgainAtMs = nowMs + commitAgainMs;
    this.produce = context.openLink();
    this.control = context.openLink();
    this.writer = new TopicWriter({
      ...context,
      topic,
      link: this.produce,
      onStored: (messages, baseOffset) => this.onStored(messages, baseOffset),
      onGivenUp: (messages, reason) => {
        this.confirm(messages);
        context.onTrouble(name, reason);
      },
    });
  }

  /** Learns what brokers have; the topic must exist there. */
  async open(): Promise<void> {
    const { control } = this;
    [this.start, this.end] = await Promise.all([logStart(control, this.topic), logEnd(control, this.topic)]);
    if (this.options.durable) await this.findGroups();
    else this.start = this.end;
  }

  /** Throws TopicFullError, MessageTooLargeError, SendBufferFullError. */
  send(message: JsonObject, text?: string): Receipt {
    const { durable, maxPendingMessages, maxPendingBytes } = this.options;
    const { buffer, clock, maxMessageBytes, sendTimeoutMs } = this.context;
    const value = text ?? JSON.stringify(message);
    const bytes = Buffer.byteLength(value);
    const pending = this.pendingMessages;
    if (pending >= maxPendingMessages || this.unconfirmedBytes + this.stored.total + bytes > maxPendingBytes) {
      throw new TopicFullError(this.name, pending, maxPendingMessages);
    }
    if (bytes > maxMessageBytes) throw new MessageTooLargeError(this.name, bytes, maxMessageBytes);
    // As much as is left free for others: a topic whose leader is away takes half of the buffer, and two take two thirds.
    if (this.unconfirmedBytes + bytes > buffer.maxBytes - buffer.bytes) {
      throw new SendBufferFullError(buffer.bytes, buffer.maxBytes);
    }
    const timeoutMs = durable ? sendTimeoutMs.durable : sendTimeoutMs.inMemory;
    const outgoing = new Outgoing(value, bytes, clock.monotonicMs() + timeoutMs);
    this.unconfirmedMessages++;
    this.unconfirmedBytes += bytes;
    buffer.bytes += bytes;
    this.writer.add(outgoing);
    return durable ? outgoing : inMemoryReceipt;
  }

  /**
   * Makes a group one of this process, and learns how far it is: another process may have been its consumer since this one
   * was. To be called before `subscribe`.
   */
  async prepare(groupName: string): Promise<void> {
    const id = this.groupId(groupName);
    const group = this.groups.get(id) ?? this.addGroup(id);
    if (!group.subscribed) await this.begin(id, group);
  }

  subscribe(groupName: string, maxInFlight: number, handler: (delivery: Delivery) => void): Subscription {
    const group = this.groups.get(this.groupId(groupName));
    if (!group) throw new Error(`group '${groupName}' of topic '${this.name}' was not prepared`);
    if (group.subscribed) throw new Error(`group '${groupName}' of topic '${this.name}' has a consumer already`);
    return group.subscribe(maxInFlight, handler);
  }

  /** Messages sent and not done by the group, as far as is known here. */
  lag(groupName: string): number {
    const group = this.groups.get(this.groupId(groupName));
    return this.unconfirmedMessages + (group?.progress.lag(this.end) ?? this.end - this.start);
  }

  /** What is to be done now and then: to be called once a second, or less often. */
  async refresh(): Promise<void> {
    if (this.options.durable) {
      const nowMs = this.context.clock.monotonicMs();
      if (nowMs >= this.commitAgainAtMs) {
        this.commitAgainAtMs = nowMs + commitAgainMs;
        for (const group of this.groups.values()) if (group.subscribed) group.commitAgain();
      }
      if (nowMs >= this.trimAtMs) {
        this.trimAtMs = nowMs + this.context.trimMs;
        await this.trim();
      }
    }
    await this.learnFromElsewhere();
  }

  /** Asks how far groups have come that are consumed elsewhere, where that may have changed. */
  private async learnFromElsewhere(): Promise<void> {
    const elsewhere = [...this.groups].filter(([, group]) => !group.subscribed);
    if (!this.options.durable || this.pendingMessages === 0) return;
    if (elsewhere.length === 0 && this.groups.size > 0) return;
    const { control } = this;
    const [start, end] = await Promise.all([logStart(control, this.topic), logEnd(control, this.topic)]);
    this.start = start;
    this.end = Math.max(this.end, end);
    if (this.groups.size === 0) await this.findGroups();
    else for (const [id, group] of elsewhere) await this.learn(id, group);
    this.dropDone(start);
  }

  /** Sends what is left and stops deliveries; both within `waitMs`. */
  async close(waitMs: number): Promise<void> {
    await this.writer.close(waitMs);
    const closed = await Promise.allSettled([...this.groups.values()].map((group) => group.close()));
    for (const result of closed) {
      if (result.status === 'rejected') this.context.onTrouble(this.name, result.reason as Error);
    }
    this.disconnect();
  }

  /** Ends its connections; what was asked and not answered fails. */
  disconnect(): void {
    this.produce.close();
    this.control.close();
  }

  private get pendingMessages(): number {
    let most = this.groups.size === 0 && this.options.durable ? this.end - this.start : 0;
    for (const { progress } of this.groups.values()) most = Math.max(most, progress.lag(this.end));
    return this.unconfirmedMessages + most;
  }

  /** OpenWhisk calls a group as its topic, or so that it begins with that; others get it put before them. */
  private groupId(name: string): string {
    if (name === this.name) return this.topic;
    return name.startsWith(this.name) ? this.topic + name.slice(this.name.length) : `${this.topic}.${name}`;
  }

  private addGroup(id: string): KafkaGroup {
    const { context, name } = this;
    const group: KafkaGroup = new KafkaGroup({
      ...context,
      control: this.control,
      topic: this.topic,
      group: this.options.durable ? id : undefined,
      onDone: (offset) => this.onDone(offset),
      onFetched: (records, end) => {
        context.onAnswer(name);
        this.onFetched(records, end);
      },
      onMalformed: (offset, reason) => context.onMalformed(name, offset, reason),
      onLost: (from, to) => {
        // The log may be shorter than it was.
        this.end = to;
        context.onLost(name, from, to);
      },
      onTrouble: (error) => context.onTrouble(name, error),
    });
    this.groups.set(id, group);
    return group;
  }

  /** A group begins where it has committed, or with the oldest message, and commits that at once. */
  private async begin(id: string, group: KafkaGroup): Promise<void> {
    if (!this.options.durable) {
      if (!group.begun) group.begin({ offset: this.start, metadata: '' }, 0);
      return;
    }
    const { control } = this;
    const committed = await fetchCommitted(control, this.topic, id);
    const [start, end] = await Promise.all([logStart(control, this.topic), logEnd(control, this.topic)]);
    if (group.subscribed) return;
    this.end = Math.max(this.end, end);
    if (committed) group.begin(committed, end);
    else {
      await commit(control, this.topic, id, { offset: start, metadata: '' });
      // What was deleted was done by some group, which brokers have forgotten: this one may have seen the rest.
      group.begin({ offset: start, metadata: '' }, start > 0 ? end : 0);
    }
  }

  /** Deletes what all groups are done with, as far as brokers know that they are. */
  private async trim(): Promise<void> {
    const own = [...this.groups.values()].filter(({ subscribed }) => subscribed);
    let below = Math.min(...own.map(({ committedBelow }) => committedBelow));
    if (!Number.isFinite(below) || below <= this.start) return;
    for (const id of await groupsOf(this.control, this.topic)) {
      if (this.groups.get(id)?.subscribed) continue;
      const committed = await fetchCommitted(this.control, this.topic, id);
      if (committed) below = Math.min(below, committed.offset);
    }
    if (below <= this.start) return;
    await deleteBelow(this.control, this.topic, below);
    this.start = below;
  }

  private async findGroups(): Promise<void> {
    for (const id of await groupsOf(this.control, this.topic)) {
      if (!this.groups.has(id)) await this.learn(id, undefined);
    }
  }

  private async learn(id: string, group: KafkaGroup | undefined): Promise<void> {
    const committed = await fetchCommitted(this.control, this.topic, id);
    if (committed) (group ?? this.addGroup(id)).progress.learn(committed);
  }

  private onStored(messages: readonly Outgoing[], baseOffset: number): void {
    this.confirm(messages);
    // Brokers do not say where it is when they knew it already.
    if (baseOffset < 0) return;
    this.end = Math.max(this.end, baseOffset + messages.length);
    if (this.options.maxPendingBytes === Infinity || (!this.options.durable && this.groups.size === 0)) return;
    for (const [index, { bytes }] of messages.entries()) this.stored.add(baseOffset + index, bytes);
  }

  /** They wait for no broker any more. */
  private confirm(messages: readonly Outgoing[]): void {
    const bytes = messages.reduce((sum, message) => sum + message.bytes, 0);
    this.unconfirmedMessages -= messages.length;
    this.unconfirmedBytes -= bytes;
    this.context.buffer.bytes -= bytes;
  }

  private onFetched(records: readonly KafkaRecord[], end: number): void {
    for (const { batch } of records) this.writer.confirm(batch.producerId, batch.firstSequence, batch.firstOffset);
    this.end = Math.max(this.end, end);
  }

  private onDone(offset: number): void {
    for (const { progress } of this.groups.values()) if (!progress.isDone(offset)) return;
    this.stored.remove(offset);
  }

  /** Forgets the sizes of what all groups are done with, or of what brokers have deleted. */
  private dropDone(start: number): void {
    const groups = [...this.groups.values()];
    for (const { progress } of groups) progress.skipTo(start);
    this.stored.removeWhere(
      (offset) => offset < start || (groups.length > 0 && groups.every(({ progress }) => progress.isDone(offset))),
    );
  }
}

/** The sizes of messages that were stored and are not done, by offset. */
class PendingBytes {
  private readonly sizes = new Map<number, number>();
  total = 0;

  add(offset: number, bytes: number): void {
    this.remove(offset);
    this.sizes.set(offset, bytes);
    this.total += bytes;
  }

  remove(offset: number): void {
    const bytes = this.sizes.get(offset);
    if (bytes === undefined) return;
    this.sizes.delete(offset);
    this.total -= bytes;
  }

  /** Those at offsets that `isDone` says so of are done. */
  removeWhere(isDone: (offset: number) => boolean): void {
    for (const at of this.sizes.keys()) if (isDone(at)) this.remove(at);
  }
}
