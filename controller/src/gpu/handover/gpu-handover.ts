import { z } from 'zod';
import { RecentIds } from '@gpuwhisk/common/short-lived-map';
import type { Delivery, MessageBus, Receipt, Subscription, TopicOptions } from '@gpuwhisk/common/bus/message-bus';
import { ApiError } from '@gpuwhisk/common/errors';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ActivationMessage, UnplacedMessage } from '@gpuwhisk/common/messages';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import { gpuDeciderKey, gpuDeciderTable } from '@gpuwhisk/common/gpu';
import type { Placement } from '@gpuwhisk/common/gpu';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { LeaseKeeper } from '../../cluster/lease.js';
import type { GpuTable } from '../state/gpu-table.js';

/** Dependencies of GpuHandover. */
interface GpuHandoverDependencies {
  bus: MessageBus;
  state: ClusterState;
  logger: Logger;
  lease: Pick<LeaseKeeper, 'epoch' | 'onChange'>;
  fence: GpuFence;
  /** This controller's number. */
  instance: number;
  /** Options of the topic that all controllers share. */
  topicOptions: TopicOptions;
}

/** Called with an activation that is not run; returns true if a caller waited and has got the error. */
export type OnRefused = (activationId: string, error: ApiError) => boolean;

/** Handles messages of other controllers; the scheduler of each controller implements it. */
interface HandoverListener {
  /** Called on the leader with an activation to place. */
  take(delivery: Delivery): void;
  /** Called when this controller is no longer the leader; its unplaced activations are delivered to the next one. */
  lost(): void;
  /** Called on the leader when the run of another controller's activation has ended. */
  ended(activationId: string, succeeded: boolean, inputSize?: number): void;
  /** Called when the leader has refused an activation of this controller. */
  refused: OnRefused;
}

/** A durable topic that only the leader consumes. */
const topic = 'gpu';
const endedChannel = 'gpu-ended';
const refusedChannel = 'gpu-refused';
const rememberedIds = 10_000;

const [text, number] = [z.string(), z.number()];
const endSchema = z.object({ activationId: text, succeeded: z.boolean(), inputSize: number.optional() });
const refusalSchema = z.object({ controller: text, activationId: text, status: number, error: text });

/**
 * Connects controllers with the leader, the one with the lease that decides about GPUs. The others send it activations that
 * need a GPU, and report ended ones. The leader tells them about refusals. Results reach each controller by themselves.
 */
export class GpuHandover {
  private readonly sent = new RecentIds(rememberedIds);
  private subscription: Promise<Subscription> | undefined;
  /** The epoch in which the subscription began. */
  private epoch: number | undefined;
  private left: Promise<void> = Promise.resolve();
  private closed = false;

  constructor(private readonly dependencies: GpuHandoverDependencies) {}

  /** Whether another controller or none is the leader. */
  get isElsewhere(): boolean {
    return this.dependencies.lease.epoch === undefined;
  }

  get fence(): GpuFence {
    return this.dependencies.fence;
  }

  /** Begins to listen. Rejects with StateUnavailableError or an error of the bus. */
  async open(listener: HandoverListener): Promise<void> {
    const { bus, state, lease, instance, topicOptions } = this.dependencies;
    await bus.ensureTopic(topic, topicOptions);
    await state.subscribe(endedChannel, (message) => {
      const { data } = endSchema.safeParse(message);
      if (!this.isElsewhere && data !== undefined) {
        listener.ended(data.activationId, data.succeeded, data.inputSize);
      }
    });
    await state.subscribe(refusedChannel, (message) => {
      const { data } = refusalSchema.safeParse(message);
      if (data?.controller !== String(instance)) return;
      listener.refused(data.activationId, new ApiError(data.status, data.error));
    });
    lease.onChange(() => this.follow(listener));
    this.follow(listener);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.leave();
    await this.left;
  }

  /** Sends an activation to the leader. Throws as MessageBus.send does. */
  send(message: UnplacedMessage): Receipt {
    const receipt = this.dependencies.bus.send(topic, message as unknown as JsonObject);
    this.sent.add(message.activation.activationId);
    return receipt;
  }

  /** Reports the end of a run, and the size of its input if the function told it, to the leader if the activation was sent there. */
  ended(activationId: string, succeeded: boolean, inputSize?: number): void {
    if (!this.isElsewhere || !this.sent.has(activationId)) return;
    this.tell(endedChannel, { activationId, succeeded, ...(inputSize !== undefined && { inputSize }) });
  }

  /** Reports a refused activation to its own controller, if that is another one. */
  refused({ activationId, rootControllerIndex }: ActivationMessage, { status, message }: ApiError): void {
    const controller = rootControllerIndex.asString;
    if (controller === String(this.dependencies.instance)) return;
    this.tell(refusedChannel, { controller, activationId, status, error: message });
  }

  private follow(listener: HandoverListener): void {
    if (this.closed) return;
    const { bus, logger, lease, fence } = this.dependencies;
    fence.announce();
    const { epoch } = lease;
    // Between two epochs of this controller another one may have been the leader.
    if (this.subscription !== undefined && epoch !== this.epoch) {
      this.leave();
      listener.lost();
    }
    if (epoch !== undefined && this.subscription === undefined) {
      const subscription = this.left.then(() =>
        bus.subscribe(topic, topic, { maxInFlight: Infinity }, (delivery) => listener.take(delivery)),
      );
      this.subscription = subscription;
      this.epoch = epoch;
      subscription.catch((error: unknown) => {
        logger.error(
          { error: String(error) },
          'the topic of activations for GPUs could not be consumed; the attempt is repeated',
        );
        if (this.subscription === subscription) this.subscription = undefined;
      });
    }
  }

  private leave(): void {
    const { subscription } = this;
    this.subscription = undefined;
    if (subscription === undefined) return;
    this.left = subscription.then(
      (made) => made.close(),
      // A subscription that failed has already logged its error.
      () => undefined,
    );
  }

  private tell(channel: string, message: JsonValue): void {
    this.dependencies.state.publish(channel, message).catch((error: unknown) => {
      this.dependencies.logger.warn(
        { channel, error: String(error) },
        'a message to another controller could not be published',
      );
    });
  }
}

/** Dependencies of GpuFence. */
interface GpuFenceDependencies {
  state: ClusterState;
  table: GpuTable;
  clock: Clock;
  logger: Logger;
  lease: Pick<LeaseKeeper, 'epoch'>;
}

/** How long an announced epoch stays readable for agents that start or missed the message, ms. */
const epochKeptMs = 60_000;
/** Interval of looks at the agents' rows while a leader waits for them, ms. */
const fenceLookMs = 50;

/**
 * Keeps a new leader from placing again what the earlier leader has placed. Agents learn its epoch, refuse placements of
 * older ones, and report the activations that they have. An agent without a current row may not know the epoch; its row
 * expires after 5 s.
 */
export class GpuFence {
  constructor(private readonly dependencies: GpuFenceDependencies) {}

  /** Announces the epoch to the agents, if this controller is the leader. */
  announce(): void {
    const { state, lease, logger } = this.dependencies;
    const { epoch } = lease;
    if (epoch === undefined) return;
    state.setRow(gpuDeciderTable, gpuDeciderKey, epoch, epochKeptMs).catch((error: unknown) => {
      logger.warn(
        { error: String(error) },
        'the epoch could not be announced to nodes with GPUs; the announcement is repeated',
      );
    });
  }

  /**
   * Resolves when this controller is the leader and all agents with a current row know its epoch, or when `isOver` returns
   * true.
   */
  async passed(isOver: () => boolean): Promise<void> {
    const { clock, lease, table } = this.dependencies;
    while (!isOver()) {
      const { epoch: own } = lease;
      // Agents of an earlier release report no epoch.
      if (own !== undefined && table.nodes().every(({ epoch = own }) => epoch >= own)) return;
      await sleep(clock, fenceLookMs);
    }
  }

  /** Whether a node has the activation by another placement than that of the returned message. */
  isInHand(message: ActivationMessage): boolean {
    return this.dependencies.table
      .nodes()
      .flatMap(({ inHand = [] }) => inHand)
      .some((held) => held.activationId === message.activationId && !isCopyOf(message, held));
  }
}

/** Whether a message comes back from the node that `placement` names. */
export function isCopyOf({ gpu }: ActivationMessage, placement: Pick<Placement, 'at' | 'epoch' | 'version'>): boolean {
  return gpu?.at === placement.at && gpu.epoch === placement.epoch && gpu.version === placement.version;
}
