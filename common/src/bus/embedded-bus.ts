import type { Clock, Timer } from '../system/clock.js';
import type { JsonObject } from '../json.js';
import type { AppendLog, LogEntry } from './append-log.js';
import { LogBehindError } from './append-log.js';
import type { Checkpoint, PendingMessage } from './topic.js';
import { dropFinished, restoreGroups, takeCheckpoint, Topic, messageOf } from './topic.js';
import type { ConsumerOptions, Delivery, MessageBus, Receipt, Subscription, TopicOptions } from './message-bus.js';
import { TopicFullError } from './message-bus.js';

const messageStream = 'bus.topic.';
const carriedStream = 'bus.again.';
const checkpointStream = 'bus.done';

/** What was done is noted in the log at most this much later, ms. */
const checkpointMs = 15;
/** While the log takes nothing that is tried so often, ms. */
const checkpointRetryMs = 1000;

/** Dependencies of an embedded bus. */
export interface EmbeddedBusOptions {
  clock: Clock;
  /** Bytes of log that unfinished messages may hold back; those further behind are appended again. */
  maxLogBytes?: number;
  /** Log files are released once so many entries more could be dropped; each time costs a sync. */
  releaseEvery?: number;
  /** A durable message was done by all its groups. */
  onDone?: (message: JsonObject) => void;
  /** A message was appended again, and what the log has about it from before may be dropped. */
  onCarry?: (message: JsonObject) => void;
  /** Told when consumed messages cannot be noted: if the process ends before the log can be written, they come again. */
  onWarning?: (warning: Error) => void;
}

const synced = Promise.resolve();
const memoryReceipt: Receipt = { synced: () => synced };

class LogReceipt implements Receipt {
  constructor(
    private readonly log: AppendLog,
    private readonly position: number,
  ) {}

  synced(): Promise<void> {
    return this.log.synced(this.position);
  }
}

/**
 * The bus inside one process: live messages are handed over as the objects they are; durable topics also write
 * them to an append log, which is read back after a restart.
 */
export class EmbeddedBus implements MessageBus {
  private readonly topics = new Map<string, Topic>();
  private recovered: Checkpoint = {};
  private log: AppendLog | undefined;
  private checkpointTimer: Timer | undefined;
  private requestedRelease = 0;
  private closed = false;

  constructor(private readonly options: EmbeddedBusOptions) {}

  /** Takes an entry of an earlier process; false if it belongs to another user of the log. */
  restore(entry: LogEntry): boolean {
    const { stream, position, payload } = entry;
    if (stream.startsWith(messageStream)) {
      this.topic(stream.slice(messageStream.length)).restore(position, position, payload);
    } else if (stream.startsWith(carriedStream)) {
      const [offset = '', ...name] = stream.slice(carriedStream.length).split('.');
      this.topic(name.join('.')).restore(Number(offset), position, payload);
    } else if (stream === checkpointStream) {
      this.recovered = JSON.parse(Buffer.from(payload).toString('utf8')) as Checkpoint;
      for (const [name, groups] of Object.entries(this.recovered)) dropFinished(this.topic(name), groups);
    } else {
      return false;
    }
    return true;
  }

  /** Starts writing to `log`, after all entries were restored. */
  open(log: AppendLog): void {
    this.log = log;
    for (const [name, groups] of Object.entries(this.recovered)) restoreGroups(this.topic(name), groups);
  }

  /** The messages that some group is not done with. */
  *unfinished(): Iterable<JsonObject> {
    for (const topic of this.topics.values()) {
      for (let node = topic.head; node; node = node.next) yield messageOf(node);
    }
  }

  ensureTopic(name: string, options: TopicOptions): Promise<void> {
    this.topic(name).options = options;
    return Promise.resolve();
  }

  send(name: string, message: JsonObject, text?: string): Receipt {
    const topic = this.openTopic(name);
    const { durable, maxPendingMessages, maxPendingBytes } = topic.options as TopicOptions;
    if (topic.pendingMessages >= maxPendingMessages) throw this.full(topic, maxPendingMessages);
    if (!durable) {
      const bytes = maxPendingBytes === Infinity ? -1 : Buffer.byteLength(JSON.stringify(message));
      if (topic.pendingBytes + bytes > maxPendingBytes) throw this.full(topic, maxPendingMessages);
      topic.push(topic.lastOffset + 1, message, bytes);
      return memoryReceipt;
    }
    const payload = text ?? JSON.stringify(message);
    const bytes = Buffer.byteLength(payload);
    if (topic.pendingBytes + bytes > maxPendingBytes) throw this.full(topic, maxPendingMessages);
    const log = this.log as AppendLog;
    const position = log.append(messageStream + name, payload);
    topic.push(position, message, bytes);
    return new LogReceipt(log, position);
  }

  async subscribe(
    name: string,
    groupName: string,
    { maxInFlight }: ConsumerOptions,
    handler: (delivery: Delivery) => void,
  ): Promise<Subscription> {
    const topic = this.openTopic(name);
    const isNew = !topic.groups.has(groupName);
    const group = topic.group(groupName);
    if (isNew && topic.options?.durable) {
      // Noted, so that after a restart other groups do not make messages vanish that this one has a right to.
      const position = this.writeCheckpoint();
      if (position !== undefined) await (this.log as AppendLog).synced(position);
    }
    if (group.handler) throw new Error(`group '${groupName}' of topic '${name}' has a consumer already`);
    group.handler = handler;
    group.maxInFlight = maxInFlight;
    group.schedulePump();
    let open = true;
    return {
      setMaxInFlight: (count) => {
        if (!open) return;
        group.maxInFlight = count;
        group.schedulePump();
      },
      close: () => {
        if (open) group.unsubscribe();
        open = false;
        return Promise.resolve();
      },
    };
  }

  lag(name: string, groupName: string): number {
    const topic = this.topics.get(name);
    return topic?.groups.get(groupName)?.lag ?? topic?.pendingMessages ?? 0;
  }

  /** Stops deliveries and notes durably what is done. The log stays open. Rejects if it cannot be noted: it will come again. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    for (const topic of this.topics.values()) {
      for (const group of topic.groups.values()) group.unsubscribe();
    }
    if (!this.checkpointTimer) return;
    const position = this.appendCheckpoint();
    await (this.log as AppendLog).synced(position);
  }

  private topic(name: string): Topic {
    let topic = this.topics.get(name);
    if (!topic) {
      topic = new Topic(name, (node) => this.noteDone(name, node));
      this.topics.set(name, topic);
    }
    return topic;
  }

  private openTopic(name: string): Topic {
    if (this.closed) throw new Error('the bus is closed');
    const topic = this.topics.get(name);
    if (!topic?.options) throw new Error(`there is no topic '${name}'`);
    return topic;
  }

  private full(topic: Topic, allowed: number): TopicFullError {
    return new TopicFullError(topic.name, topic.pendingMessages, allowed);
  }

  private noteDone(name: string, node: PendingMessage): void {
    if (!this.topics.get(name)?.options?.durable) return;
    if (node.openGroups === 0) this.options.onDone?.(messageOf(node));
    if (!this.closed) this.checkpointTimer ??= this.setCheckpointTimer();
  }

  private setCheckpointTimer(afterMs = checkpointMs): Timer {
    return this.options.clock.setTimer(afterMs, () => this.writeCheckpoint());
  }

  /** Appends what every group has consumed. Undefined if the log cannot take it: it is tried again. */
  private writeCheckpoint(): number | undefined {
    try {
      return this.appendCheckpoint();
    } catch (error) {
      this.options.onWarning?.(error as Error);
      const afterMs = error instanceof LogBehindError ? checkpointMs : checkpointRetryMs;
      if (!this.closed) this.checkpointTimer = this.setCheckpointTimer(afterMs);
      return undefined;
    }
  }

  private appendCheckpoint(): number {
    this.checkpointTimer?.cancel();
    this.checkpointTimer = undefined;
    const log = this.log as AppendLog;
    this.carryForward(log);
    const position = log.append(checkpointStream, JSON.stringify(takeCheckpoint(this.durableTopics())));
    this.releaseBehind(log, position);
    return position;
  }

  private *durableTopics(): Iterable<Topic> {
    for (const topic of this.topics.values()) if (topic.options?.durable !== false) yield topic;
  }

  /** Drops the files that hold finished messages only, once the checkpoint that says so is synced. */
  private releaseBehind(log: AppendLog, checkpointPosition: number): void {
    let oldest = checkpointPosition;
    for (const topic of this.durableTopics()) {
      for (let node = topic.head; node; node = node.next) {
        oldest = Math.min(oldest, node.position);
        if (node.position === node.offset) break;
      }
    }
    if (oldest - this.requestedRelease < (this.options.releaseEvery ?? 256)) return;
    this.requestedRelease = oldest;
    log.synced(checkpointPosition).then(
      () => log.release(oldest),
      (error: unknown) => this.options.onWarning?.(error as Error),
    );
  }

  /**
   * One message that takes a day must not keep a day of log. What little is unfinished far behind is appended
   * again, under its old offset; where much is unfinished, the log may be longer.
   */
  private carryForward(log: AppendLog): void {
    const maxLogBytes = this.options.maxLogBytes ?? 128 * 1024 * 1024;
    const from = log.oldestWithin(maxLogBytes);
    const behind: { topic: Topic; node: PendingMessage }[] = [];
    let bytes = 0;
    for (const topic of this.durableTopics()) {
      // Carried messages come first in the topic; behind them positions are offsets and rise.
      for (let node = topic.head; node; node = node.next) {
        if (node.position < from) {
          behind.push({ topic, node });
          bytes += Math.max(0, node.bytes);
        } else if (node.position === node.offset) break;
      }
    }
    if (behind.length === 0 || bytes > maxLogBytes / 4) return;
    for (const { topic, node } of behind) {
      const message = messageOf(node);
      node.position = log.append(`${carriedStream}${node.offset}.${topic.name}`, JSON.stringify(message));
      this.options.onCarry?.(message);
    }
  }
}
