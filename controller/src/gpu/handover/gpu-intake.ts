import { isRecorded } from '@gpuwhisk/common/activations/record-policy';
import type { RecordLevels } from '@gpuwhisk/common/activations/record-policy';
import type { Delivery, MessageBus, Subscription } from '@gpuwhisk/common/bus/message-bus';
import { MalformedError } from '@gpuwhisk/common/entities/malformed';
import type { Logger } from '@gpuwhisk/common/logging';
import { readUnplacedMessage } from '@gpuwhisk/common/messages';
import type { ActivationMessage, UnplacedMessage } from '@gpuwhisk/common/messages';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { GpuHandover } from './gpu-handover.js';
import type { LeaseKeeper } from '../../cluster/lease.js';

/** A queued activation that another controller shall place. */
export interface QueuedActivation {
  message: ActivationMessage;
  /** Reasons of the agents that refused the activation. */
  refusals: readonly string[];
  /** Ends the message that keeps the activation. */
  done: () => void;
}

/** Dependencies of GpuIntake. */
export interface GpuIntakeDependencies {
  bus: MessageBus;
  store: ArtifactStore;
  recordLevels: RecordLevels;
  /** The lease of the leader. */
  lease: Pick<LeaseKeeper, 'epoch'>;
  clock: Clock;
  logger: Logger;
  /** Connection to the leader; absent if this controller is always the leader. */
  handover?: GpuHandover;
  /** The topic of activations that this controller has accepted and not placed; it bounds their number. */
  topic: string;
  /** Whether an arriving activation has ended, or runs at the place to which another copy was sent. */
  isSettled(message: ActivationMessage): boolean;
  /** Ends a sample that did not run at its place; samples do not wait. */
  dropSample(message: ActivationMessage, reason: string): void;
  /** Queues an activation to be placed here; `done` ends the message that keeps it. */
  enqueue(message: UnplacedMessage, done: () => void): void;
}

/** Delay before an activation that could not be sent to the leader is sent again, ms. */
const sendAgainMs = 1000;

/**
 * Takes up activations that wait for a GPU: from this controller's own topic and, on the leader, from the topic of all
 * controllers. Sends them on if another controller is the leader.
 */
export class GpuIntake {
  /** Ids of activations that wait here and came from the topic of all controllers. */
  private readonly fromOthers = new Set<string>();
  private subscription: Subscription | undefined;
  /** Counts the terms of this controller as leader. */
  private term = 0;
  private closed = false;

  constructor(private readonly dependencies: GpuIntakeDependencies) {}

  /** Starts to consume the topic, which must exist. */
  async open(): Promise<void> {
    const { bus, topic } = this.dependencies;
    this.subscription = await bus.subscribe(topic, topic, { maxInFlight: Infinity }, (delivery) => {
      const message = this.read(delivery);
      if (message === undefined) return;
      const done = (): void => delivery.done();
      if (!this.dependencies.handover?.isElsewhere) this.take(message, delivery.redelivered, done, 'own');
      else this.sendOn(delivery.redelivered ? { ...message, seenBefore: true } : message, done);
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.subscription?.close();
  }

  /** Takes a delivery from the topic of all controllers. */
  takeOfOthers(delivery: Delivery): void {
    const message = this.read(delivery);
    if (message === undefined) return;
    const { activationId } = message.activation;
    this.fromOthers.add(activationId);
    const done = (): void => {
      this.fromOthers.delete(activationId);
      delivery.done();
    };
    this.take(message, delivery.redelivered, done, 'shared');
  }

  /** Ends a term of this controller; lookups in progress then have no effect. */
  termEnded(): void {
    this.term++;
  }

  /** Sends an activation that has waited here to the new leader. */
  handOver({ message, refusals, done }: QueuedActivation): void {
    // Activations from the topic of all controllers are delivered from there to the new leader.
    if (this.fromOthers.delete(message.activationId)) return;
    this.sendOn({ activation: refusals.length === 0 ? message : { ...message, gpuRefusals: [...refusals] } }, done);
  }

  /** The message of a delivery. A message that is no activation for a GPU is logged and skipped. */
  private read(delivery: Delivery): UnplacedMessage | undefined {
    try {
      const message = readUnplacedMessage(delivery.message);
      if (message.activation.sample === undefined) return message;
      this.dependencies.dropSample(message.activation, message.refused ?? 'its invoker was started again');
      delivery.done();
      return undefined;
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error;
      this.dependencies.logger.warn({ reason: error.message }, 'a message that is no activation for a GPU was skipped');
      delivery.done();
      return undefined;
    }
  }

  /** Sends an activation to the leader, and repeats that until it succeeds. */
  private sendOn(message: UnplacedMessage, done: () => void): void {
    const { handover, logger, clock } = this.dependencies;
    const failed = (error: unknown): void => {
      if (this.closed) return;
      logger.error({ error: String(error) }, 'an activation could not be sent to the leader');
      clock.setBackgroundTimer(sendAgainMs, () => this.sendOn(message, done));
    };
    try {
      handover?.send(message).synced().then(done, failed);
    } catch (error) {
      failed(error);
    }
  }

  private take(message: UnplacedMessage, redelivered: boolean, done: () => void, topic: 'own' | 'shared'): void {
    const { gpu } = message.activation;
    // An earlier process or leader may already have sent the activation to an invoker.
    const isOld =
      redelivered || message.seenBefore || (gpu !== undefined && gpu.epoch !== this.dependencies.lease.epoch);
    // After a crash both this topic and an invoker's may have the activation.
    if (this.dependencies.isSettled(message.activation)) done();
    else if (isOld) void this.takeUnlessSent(message, done, topic);
    else this.dependencies.enqueue(message, done);
  }

  private async takeUnlessSent(message: UnplacedMessage, done: () => void, topic: 'own' | 'shared'): Promise<void> {
    const { isSettled, enqueue, handover } = this.dependencies;
    const { activation } = message;
    const { term } = this;
    const isOver = (): boolean => this.closed || this.term !== term;
    await handover?.fence.passed(isOver);
    const isSent =
      !isOver() && (handover?.fence.isInHand(activation) || (await isRecorded(this.dependencies, activation)));
    if (this.closed) return;
    if (isSent || isSettled(activation)) done();
    else if (!isOver()) enqueue(message, done);
    else if (topic === 'own') this.sendOn({ ...message, seenBefore: true }, done);
    // The topic of all controllers delivers the activation again, to the present leader.
    else this.fromOthers.delete(activation.activationId);
  }
}
