// Topics of the embedded bus with their consumer groups, and checkpoints of what groups have consumed.
import type { JsonObject } from '../json.js';
import { ShortLivedMap } from '../short-lived-map.js';
import type { Delivery, TopicOptions } from './message-bus.js';

/** A message that some group needs still, linked to its neighbours in order of offset. */
export interface PendingMessage {
  readonly offset: number;
  /** Where the log holds it: the offset, or later if it was carried forward. */
  position: number;
  message: JsonObject | undefined;
  /** The message as read from the log; parsed when first delivered. */
  payload: Uint8Array | undefined;
  /** Serialised length; -1 until it is computed. */
  bytes: number;
  /** What of `bytes` the topic's limit counts. */
  readonly countedBytes: number;
  /** Groups that are not done with it. */
  openGroups: number;
  /** Read from the log: an earlier process may have delivered it. */
  readonly restored: boolean;
  previous: PendingMessage | undefined;
  next: PendingMessage | undefined;
}

/** The message as an object, parsed at most once. */
export function messageOf(node: PendingMessage): JsonObject {
  if (node.message === undefined) {
    node.message = JSON.parse(Buffer.from(node.payload ?? []).toString('utf8')) as JsonObject;
    node.payload = undefined;
  }
  return node.message;
}

/** The serialised length, bytes. */
function bytesOf(node: PendingMessage): number {
  if (node.bytes < 0) node.bytes = Buffer.byteLength(JSON.stringify(messageOf(node)));
  return node.bytes;
}

/**
 * What one consumer group has of a topic.
 *
 *     finished │ again, inHand: delivered once, not done │ cursor: not delivered yet ...
 */
class Group {
  /** The next message to deliver for the first time; all behind it are undelivered too. */
  cursor: PendingMessage | undefined;
  undelivered = 0;
  readonly inHand = new ShortLivedMap<number, PendingMessage>();
  /** Were in hand of an earlier subscriber: delivered first, in order of offset. */
  again = new Map<number, PendingMessage>();
  handler: ((delivery: Delivery) => void) | undefined;
  maxInFlight = 0;
  pumpScheduled = false;

  constructor(
    readonly topic: Topic,
    readonly name: string,
  ) {}

  /** Messages sent and not done. */
  get lag(): number {
    return this.undelivered + this.inHand.size + this.again.size;
  }

  /** Calls pump at the end of this microtask turn, once. */
  schedulePump(): void {
    if (this.pumpScheduled || this.handler === undefined) return;
    this.pumpScheduled = true;
    // Cheaper than queueMicrotask, which keeps a context for each.
    void Promise.resolve().then(() => this.pump());
  }

  /** The handler's hold on a message ends; false if it was done before. */
  finish(node: PendingMessage): boolean {
    if (!this.inHand.delete(node.offset) && !this.again.delete(node.offset)) return false;
    if (--node.openGroups === 0) this.topic.unlink(node);
    if (this.undelivered > 0 || this.again.size > 0) this.schedulePump();
    return true;
  }

  /** Takes what is in hand back, for the next subscriber. */
  unsubscribe(): void {
    this.handler = undefined;
    const back = [...this.again.values(), ...this.inHand.values()].sort((one, other) => one.offset - other.offset);
    this.again = new Map(back.map((node) => [node.offset, node]));
    this.inHand.clear();
  }

  private pump(): void {
    this.pumpScheduled = false;
    while (this.handler !== undefined && this.inHand.size < this.maxInFlight) {
      const again = this.again.size > 0;
      const node = again ? this.takeAgain() : this.takeNew();
      if (!node) return;
      this.inHand.set(node.offset, node);
      this.handler(new TopicDelivery(this, node, again));
    }
  }

  private takeAgain(): PendingMessage | undefined {
    const first = this.again.values().next();
    if (first.done) return undefined;
    this.again.delete(first.value.offset);
    return first.value;
  }

  private takeNew(): PendingMessage | undefined {
    const node = this.cursor;
    if (node) {
      this.cursor = node.next;
      this.undelivered--;
    }
    return node;
  }
}

class TopicDelivery implements Delivery {
  readonly offset: number;
  readonly message: JsonObject;
  readonly redelivered: boolean;

  constructor(
    private readonly group: Group,
    private readonly node: PendingMessage,
    again: boolean,
  ) {
    this.offset = node.offset;
    this.message = messageOf(node);
    this.redelivered = again || node.restored;
  }

  get bytes(): number {
    return bytesOf(this.node);
  }

  done(): void {
    if (this.group.finish(this.node)) this.group.topic.onDone(this.node);
  }
}

/** The messages of one topic that are not finished, and its groups. In memory; knows nothing of the log. */
export class Topic {
  options: TopicOptions | undefined;
  readonly groups = new Map<string, Group>();
  head: PendingMessage | undefined;
  tail: PendingMessage | undefined;
  pendingMessages = 0;
  /** Counted where the topic has a limit in bytes. */
  pendingBytes = 0;
  /** The highest offset given so far. */
  lastOffset = 0;

  constructor(
    readonly name: string,
    /** Called when a group is done with a message. */
    readonly onDone: (node: PendingMessage) => void,
  ) {}

  /** Adds a message behind the last. */
  push(offset: number, message: JsonObject, bytes: number): void {
    const node = this.link(this.tail, offset, offset, message, undefined, bytes);
    for (const group of this.groups.values()) {
      group.cursor ??= node;
      group.undelivered++;
      group.schedulePump();
    }
  }

  /** Adds a message that was read from the log, wherever its offset belongs. */
  restore(offset: number, position: number, payload: Uint8Array): void {
    let before = this.tail;
    while (before && before.offset > offset) before = before.previous;
    if (before?.offset === offset) before.position = position;
    else this.link(before, offset, position, undefined, payload, payload.length);
  }

  /** The group of that name; a new one starts at the oldest message kept. */
  group(name: string): Group {
    let group = this.groups.get(name);
    if (!group) {
      group = new Group(this, name);
      this.groups.set(name, group);
      group.cursor = this.head;
      for (let node = this.head; node; node = node.next) {
        node.openGroups++;
        group.undelivered++;
      }
    }
    return group;
  }

  unlink(node: PendingMessage): void {
    if (node.previous) node.previous.next = node.next;
    else this.head = node.next;
    if (node.next) node.next.previous = node.previous;
    else this.tail = node.previous;
    // A finished node that kept pointing at younger ones would make the collector carry all of them on.
    node.previous = undefined;
    node.next = undefined;
    this.pendingMessages--;
    this.pendingBytes -= node.countedBytes;
  }

  private link(
    previous: PendingMessage | undefined,
    offset: number,
    position: number,
    message: JsonObject | undefined,
    payload: Uint8Array | undefined,
    bytes: number,
  ): PendingMessage {
    const next = previous ? previous.next : this.head;
    const countedBytes = Math.max(0, bytes);
    const openGroups = this.groups.size;
    const restored = payload !== undefined;
    const node: PendingMessage = {
      offset,
      position,
      message,
      payload,
      bytes,
      countedBytes,
      openGroups,
      restored,
      previous,
      next,
    };
    if (previous) previous.next = node;
    else this.head = node;
    if (next) next.previous = node;
    else this.tail = node;
    this.lastOffset = Math.max(this.lastOffset, offset);
    this.pendingMessages++;
    this.pendingBytes += countedBytes;
    return node;
  }
}

/**
 * What every group of every durable topic has consumed, as one log entry: topic → group → first the offset of its
 * next message, then the offsets before it that were delivered and are not done (at most as many as are in flight).
 */
export type Checkpoint = Record<string, Record<string, number[]>>;

/** The state of the durable topics now. */
export function takeCheckpoint(topics: Iterable<Topic>): Checkpoint {
  const checkpoint: Checkpoint = {};
  for (const topic of topics) {
    if (topic.groups.size === 0) continue;
    const groups: Record<string, number[]> = (checkpoint[topic.name] = {});
    for (const group of topic.groups.values()) {
      const next = group.cursor?.offset ?? topic.lastOffset + 1;
      groups[group.name] = [next, ...group.again.keys(), ...group.inHand.keys()];
    }
  }
  return checkpoint;
}

/** Forgets the messages that all groups in `positions` have finished, looking only at those before every `next`. */
export function dropFinished(topic: Topic, positions: Record<string, number[]>): void {
  const groups = Object.values(positions);
  if (groups.length === 0) return;
  const firstNext = Math.min(...groups.map((offsets) => offsets[0] ?? 0));
  const unfinished = new Set(groups.flatMap((offsets) => offsets.slice(1)));
  for (let node = topic.head; node && node.offset < firstNext; node = node.next) {
    if (!unfinished.has(node.offset)) topic.unlink(node);
  }
}

/** Gives a recovered topic its groups, as the last checkpoint has them. */
export function restoreGroups(topic: Topic, positions: Record<string, number[]>): void {
  // All groups are made first: a message goes when the last of them has finished it.
  for (const name of Object.keys(positions)) topic.group(name);
  for (const [name, [next = 0, ...delivered]] of Object.entries(positions)) {
    const group = topic.group(name);
    const unfinished = new Set(delivered);
    topic.lastOffset = Math.max(topic.lastOffset, next - 1);
    while (group.cursor && group.cursor.offset < next) {
      const node = group.cursor;
      group.cursor = node.next;
      group.undelivered--;
      group.again.set(node.offset, node);
      if (!unfinished.has(node.offset)) group.finish(node);
    }
  }
}
