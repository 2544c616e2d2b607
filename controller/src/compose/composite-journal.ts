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
  /** Bytes of records that may wait for the store; nothing more should be accepted beyond it. */
  maxUnstoredBytes: number;
  /** This controller's number: its sequences are in topic `compositions<number>`. */
  instance: number;
}

/** Called for each composition that an earlier process left: one that began is to end now, one that did not is to run. */
export type Recover = (message: ActivationMessage, begun: boolean) => void;

/**
 * Keeps what a controller has accepted to run itself until there is a record of it: its message goes to a topic of the
 * controller's own before anything else happens, and is done when the record is stored.
 */
export class CompositeJournal {
  /** By activation: what ends the message, once that was delivered; whether the record was stored before. */
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
    // The topic bounds what is in hand: a bound here would keep nested ones from ending what is around them.
    this.feed = new ActivationFeed(bus, this.topic, Infinity, {
      accept: take,
      recover: take,
      malformed: (offset, reason) => {
        logger.error({ topic: this.topic, offset, reason }, 'a message that is no activation was skipped');
      },
    });
  }

  /** Starts to consume the topic, which must exist, and what earlier processes left there. */
  async open(): Promise<void> {
    await this.feed.open();
  }

  /** Stops consuming: what is left in the topic and was not begun waits for the next process start. */
  stopTaking(): Promise<void> {
    return this.feed.close();
  }

  /** Stores the records that were added. */
  close(): Promise<void> {
    return this.records.close();
  }

  /** How long the oldest record that waits for its turn has waited, ms. */
  get lagMs(): number {
    return this.records.lagMs;
  }

  /** So many records wait for the store that nothing more should be accepted. */
  get isFull(): boolean {
    return this.records.isFull;
  }

  /** Accepts one. Throws TopicFullError, or another Error if the log has failed. */
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

  /** Notes that one begins now; the function returned waits until the note would survive a power loss. */
  begin(activationId: string): () => Promise<void> {
    return this.dependencies.marks.mark(activationId);
  }

  /** Ends one; resolves once its record, if it is to be kept, is durable. */
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
    // What a nested one was part of has begun, and does not go on.
    else this.recover(message, cause !== undefined || this.dependencies.marks.startedBefore(activationId));
  }
}
