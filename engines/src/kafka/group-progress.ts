import type { JsonObject } from '@gpuwhisk/common/json';
import type { Delivery } from '@gpuwhisk/common/bus/message-bus';
import { ShortLivedMap } from '@gpuwhisk/common/short-lived-map';
import { OffsetRanges } from './offset-ranges.js';

/** A message that a reader has fetched. */
export interface FetchedMessage {
  offset: number;
  message: JsonObject;
  /** Serialised. */
  bytes: number;
}

/** What brokers keep for a group. */
export interface CommittedProgress {
  /** All messages below are done. */
  offset: number;
  /** Those done above, as OffsetRanges writes them. */
  metadata: string;
}

/** As much as brokers keep by default (`offset.metadata.max.bytes`). */
const maxMetadataLength = 4096;

/**
 * How far a group has come in a topic.
 *
 *     all done │ in hand, again: delivered once and not done; between them, done │ waiting: fetched only │ nextOffset
 *
 * Knows nothing of brokers.
 */
export class GroupProgress {
  /** All messages below it are done. */
  private watermark = 0;
  private doneAbove = new OffsetRanges();
  private waiting: FetchedMessage[] = [];
  private waitingFrom = 0;
  private readonly inHand = new ShortLivedMap<number, FetchedMessage>();
  /** Were in hand of an earlier subscriber, in order of offset. */
  private again: FetchedMessage[] = [];
  private redeliveredBelow = 0;
  /** Messages done since this process began that are not committed yet. */
  private uncommitted = 0;
  private handler: ((delivery: Delivery) => void) | undefined;
  private maxInFlight = 0;
  private scheduled = false;
  /** The next message to fetch. */
  nextOffset = 0;
  /** Bytes fetched and not delivered yet. */
  waitingBytes = 0;

  constructor(
    /** Called after messages became done: one that was delivered, or all below an offset that held nothing to deliver. */
    private readonly onDone: (offset: number, message?: JsonObject) => void,
    /** Called after fetched messages were delivered, so that there is room for others. */
    private readonly onRoom: () => void,
    /** Nothing more is delivered while so many messages are done and not committed. */
    private readonly maxUncommitted = Infinity,
  ) {}

  /** Begins where `committed` says; undelivered messages below `redeliveredBelow` may have been seen. */
  begin(committed: CommittedProgress, redeliveredBelow: number): void {
    this.skipTo(committed.offset);
    this.nextOffset = committed.offset;
    this.redeliveredBelow = redeliveredBelow;
    this.learn(committed);
  }

  /**
   * Goes on after a time in which another process may have consumed: what that has committed is done, and what it may have
   * seen, all below `end`, comes marked.
   */
  resume(committed: CommittedProgress, end: number): void {
    this.learn(committed);
    this.nextOffset = Math.max(this.nextOffset, committed.offset);
    this.redeliveredBelow = Math.max(this.redeliveredBelow, end);
    const isLeft = ({ offset }: FetchedMessage): boolean => !this.isDone(offset);
    this.again = this.again.filter(isLeft);
    this.waiting = this.waiting.slice(this.waitingFrom).filter(isLeft);
    this.waitingFrom = 0;
    this.waitingBytes = this.waiting.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Begins again at `offset`: messages below `end` may have been seen. What is in hand is not known any more. */
  restart(offset: number, end: number): void {
    this.doneAbove = new OffsetRanges();
    this.watermark = this.nextOffset = offset;
    this.redeliveredBelow = end;
    this.waiting = [];
    this.again = [];
    this.waitingFrom = this.waitingBytes = 0;
    this.inHand.clear();
    this.schedule();
  }

  /** Takes over what another process has committed. */
  learn({ offset, metadata }: CommittedProgress): void {
    this.skipTo(offset);
    const done = OffsetRanges.decode(metadata, offset);
    done?.forEach((from, to) => this.doneAbove.add(from, to));
  }

  /** Everything below `offset` is done, or gone. */
  skipTo(offset: number): void {
    if (offset <= this.watermark) return;
    this.doneAbove.add(this.watermark, offset);
    this.advance();
  }

  /** The end of what is consumed without a gap. */
  get doneBelow(): number {
    return this.watermark;
  }

  isDone(offset: number): boolean {
    return offset < this.watermark || this.doneAbove.has(offset);
  }

  /** Messages below `end` that are not done. */
  lag(end: number): number {
    return Math.max(0, end - this.watermark - this.doneAbove.count);
  }

  /** So many of the messages that became done are committed. */
  settle(count: number): void {
    this.uncommitted -= count;
    this.schedule();
  }

  /** What is to be committed. */
  committed(): CommittedProgress {
    return { offset: this.watermark, metadata: this.doneAbove.encode(this.watermark, maxMetadataLength) };
  }

  /** Takes messages that were fetched, in rising order; offsets that lie between hold nothing. Those done are left out. */
  take(fetched: Iterable<FetchedMessage>, nextOffset: number): void {
    for (const message of fetched) {
      if (message.offset < this.nextOffset) continue;
      this.doneAbove.add(this.nextOffset, message.offset);
      this.nextOffset = message.offset + 1;
      if (this.isDone(message.offset)) continue;
      this.waiting.push(message);
      this.waitingBytes += message.bytes;
    }
    if (nextOffset > this.nextOffset) {
      this.doneAbove.add(this.nextOffset, nextOffset);
      this.nextOffset = nextOffset;
    }
    if (this.advance()) this.onDone(this.watermark);
    this.schedule();
  }

  subscribe(maxInFlight: number, handler: (delivery: Delivery) => void): void {
    this.handler = handler;
    this.setMaxInFlight(maxInFlight);
  }

  get subscribed(): boolean {
    return this.handler !== undefined;
  }

  setMaxInFlight(count: number): void {
    this.maxInFlight = count;
    this.schedule();
  }

  /** Takes what is in hand back, for the next subscriber. */
  unsubscribe(): void {
    this.handler = undefined;
    this.again = [...this.again, ...this.inHand.values()].sort((one, other) => one.offset - other.offset);
    this.inHand.clear();
  }

  /** Delivers at the end of this microtask turn, once. */
  private schedule(): void {
    if (this.scheduled || this.handler === undefined) return;
    this.scheduled = true;
    queueMicrotask(() => this.deliver());
  }

  private deliver(): void {
    this.scheduled = false;
    let delivered = false;
    while (this.handler !== undefined && this.inHand.size < this.maxInFlight && this.mayDeliver) {
      const again = this.again.shift();
      const fetched = again ?? this.takeWaiting();
      if (fetched === undefined) break;
      delivered = true;
      this.inHand.set(fetched.offset, fetched);
      this.handler({
        ...fetched,
        redelivered: again !== undefined || fetched.offset < this.redeliveredBelow,
        done: () => this.finish(fetched),
      });
    }
    if (delivered) this.onRoom();
  }

  private get mayDeliver(): boolean {
    return this.uncommitted < this.maxUncommitted;
  }

  private takeWaiting(): FetchedMessage | undefined {
    const next = this.waiting[this.waitingFrom];
    if (next === undefined) return undefined;
    this.waitingBytes -= next.bytes;
    if (++this.waitingFrom === this.waiting.length) {
      this.waiting = [];
      this.waitingFrom = 0;
    }
    return next;
  }

  private finish(message: FetchedMessage): void {
    const { offset } = message;
    if (this.inHand.get(offset) === message) this.inHand.delete(offset);
    else {
      const index = this.again.indexOf(message);
      if (index < 0) return;
      this.again.splice(index, 1);
    }
    this.uncommitted++;
    this.doneAbove.add(offset, offset + 1);
    this.advance();
    this.onDone(offset, message.message);
    this.schedule();
  }

  /** Moves the watermark over what is done; true if it has moved. */
  private advance(): boolean {
    const before = this.watermark;
    this.watermark = this.doneAbove.takeFrom(before);
    return this.watermark !== before;
  }
}
