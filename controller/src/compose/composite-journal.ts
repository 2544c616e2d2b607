import { ActivationFeed } from '@gpuwhisk/common/activations/activation-feed';
import { isRecorded, isRecordKept, recordedCall } from '@gpuwhisk/common/activations/record-policy';
import type { RecordLevels } from '@gpuwhisk/common/activations/record-policy';
import { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import type { MessageBus, Receipt } from '@gpuwhisk/common/bus/message-bus';
import type { StartJournal } from '@gpuwhisk/common/bus/durable';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { activationDocument } from '@gpuwhisk/common/entities/activation';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';

/** Dependencies of CompositeJournal. */
export interface JournalDependencies {
  bus: MessageBus;
  marks: Pick<StartJournal, 'mark' | 'startedBefore'>;
  store: ArtifactStore;
  clock: Clock;
  logger: Logger;
  /** Which records are stored. */
  recordLevels: RecordLevels;
  /** Most bytes of records that wait for the store; beyond this bound no more compositions should be accepted. */
  maxUnstoredBytes: number;
  /** This controller's number; its topic is `compositions<number>`. */
  instance: number;
}

/** Called for each composition that an earlier process left. One that had begun must end now; another must run. */
export type Recover = (message: ActivationMessage, begun: boolean) => void;

/**
 * Keeps accepted sequences and compositions until their records are stored. The message first goes to a topic of the
 * controller's own and is done when the record is stored.
 */
export class CompositeJournal {
  /** By activation: the callback that ends a delivered message, and whether the record was stored before the delivery. */
  private readonly entries = new Map<string, { done?: () => void; stored: boolean }>();
  private readonly topic: string;
  private readonly feed: ActivationFeed;
  private readonly records: RecordWriter;

  constructor(
    private readonly dependencies: JournalDependencies,
    private readonly recover: Recover,
  ) {
    const { bus, store, clock, logger, instance, maxUnstoredBytes } = dependencies;
    this.topic = `compositions${instance}`;
    this.records = new RecordWriter(store, clock, logger, { maxPendingBytes: maxUnstoredBytes });
    const take = (message: ActivationMessage, done: () => void): void => this.take(message, done);
    // The topic is the bound. A bound here could block nested compositions that their parents wait for.
    this.feed = new ActivationFeed(bus, this.topic, Infinity, {
      accept: take,
      recover: take,
      malformed: (offset, reason) => {
        logger.error({ topic: this.topic, offset, reason }, 'a message that is no activation was skipped');
      },
    });
  }

  /** Starts to consume the topic, which must exist, including messages of earlier processes. */
  async open(): Promise<void> {
    await this.feed.open();
  }

  /** Stops consuming; messages of compositions that have not begun stay in the topic for the next process start. */
  stopTaking(): Promise<void> {
    return this.feed.close();
  }

  /** Stores the pending records. */
  close(): Promise<void> {
    return this.records.close();
  }

  /** Age of the oldest record that waits to be stored, ms. */
  get lagMs(): number {
    return this.records.lagMs;
  }

  /** Whether too many records wait for the store to accept more compositions. */
  get isFull(): boolean {
    return this.records.isFull;
  }

  /** Whether the store's disk has too little space for more compositions. */
  get storeIsFull(): boolean {
    return this.records.storeIsFull;
  }

  /** Accepts a composition. Throws TopicFullError, or another Error if the log has failed. */
  send(message: ActivationMessage): Receipt {
    const { activationId } = message;
    this.entries.set(activationId, { stored: false });
    try {
      return this.dependencies.bus.send(this.topic, message as unknown as JsonObject);
    } catch (error) {
      this.entries.delete(activationId);
      throw error;
    }
  }

  /** Writes a start mark. The returned function waits until the mark is durable. */
  begin(activationId: string): () => Promise<void> {
    return this.dependencies.marks.mark(activationId);
  }

  /** Ends a composition; resolves when its record, if one is to be stored, is durable. */
  record(message: ActivationMessage, activation: WhiskActivation): Promise<void> {
    if (!isRecordKept(this.dependencies.recordLevels, recordedCall(message), activation.response.statusCode)) {
      this.stored(activation.activationId);
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      this.records.add(activationDocument(activation, this.dependencies.clock.now()), () => {
        this.stored(activation.activationId);
        resolve();
      });
    });
  }

  private stored(activationId: string): void {
    const entry = this.entries.get(activationId);
    if (entry === undefined) return;
    entry.stored = true;
    if (entry.done !== undefined) this.end(activationId, entry.done);
  }

  private take(message: ActivationMessage, done: () => void): void {
    const { activationId } = message;
    const entry = this.entries.get(activationId);
    if (entry === undefined) {
      this.entries.set(activationId, { done, stored: false });
      void this.recoverUnlessRecorded(message, done);
    } else if (entry.stored) this.end(activationId, done);
    else entry.done = done;
  }

  private end(activationId: string, done: () => void): void {
    this.entries.delete(activationId);
    done();
  }

  private async recoverUnlessRecorded(message: ActivationMessage, done: () => void): Promise<void> {
    const { activationId, cause } = message;
    if (await isRecorded(this.dependencies, message)) this.end(activationId, done);
    // The parent of a nested composition had begun and does not continue.
    else this.recover(message, cause !== undefined || this.dependencies.marks.startedBefore(activationId));
  }
}
