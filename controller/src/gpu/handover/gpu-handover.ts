import { RecentIds } from '@gpuwhisk/common/short-lived-map';
import type { Delivery, MessageBus, Receipt, Subscription, TopicOptions } from '@gpuwhisk/common/bus/message-bus';
import { ApiError } from '@gpuwhisk/common/errors';
import { isJsonObject } from '@gpuwhisk/common/json';
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
  /** Of the topic that all controllers share. */
  topicOptions: TopicOptions;
}

/** Told of an activation that is not run; true if a caller waited and has got the error as its answer. */
export type OnRefused = (activationId: string, error: ApiError) => boolean;

/** Handles messages of other controllers; the scheduler of each controller implements it. */
interface HandoverListener {
  /** To be placed here, while this controller decides. */
  take(delivery: Delivery): void;
  /** This controller is no longer the leader: what it took comes to another. */
  lost(): void;
  /** The run of an activation from another controller is over. */
  ended(activationId: string, succeeded: boolean): void;
  /** The one that decides has refused an activation from here. */
  refused: OnRefused;
}

/** Durable; only the controller that decides consumes it. */
const topic = 'gpu';
const endedChannel = 'gpu-ended';
const refusedChannel = 'gpu-refused';
const rememberedIds = 10_000;

/**
 * How the controllers of a cluster have one of them decide about GPUs, the one with the lease: the others send it what
 * needs a GPU, and tell it what has ended; it tells them what it has refused. Results come to each by themselves.
 */
export class GpuHandover {
  private readonly sent = new RecentIds(rememberedIds);
  private subscription: Promise<Subscription> | undefined;
  /** In which the subscription began. */
  private epoch: number | undefined;
  private left: Promise<void> = Promise.resolve();
  private closed = false;

  constructor(private readonly dependencies: GpuHandoverDependencies) {}

  /** Whether another controller decides, or none for now. */
  get isElsewhere(): boolean {
    return this.dependencies.lease.epoch === undefined;
  }

  get fence(): GpuFence {
    return this.dependencies.fence;
  }

  /** Rejects with StateUnavailableError, or with what the bus rejects with. */
  async open(listener: HandoverListener): Promise<void> {
    const { bus, state, lease, instance, topicOptions } = this.dependencies;
    await bus.ensureTopic(topic, topicOptions);
    await state.subscribe(endedChannel, (message) => {
      if (!this.isElsewhere && isEnd(message)) listener.ended(message.activationId, message.succeeded);
    });
    await state.subscribe(refusedChannel, (message) => {
      if (isRefusal(message) && message.controller === String(instance)) {
        listener.refused(message.activationId, new ApiError(message.status, message.error));
      }
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

  /** The run of an activation is over: the leader is told, if the activation was sent there. */
  ended(activationId: string, succeeded: boolean): void {
    if (this.isElsewhere && this.sent.has(activationId)) this.tell(endedChannel, { activationId, succeeded });
  }

  /** An activation is not run: its own controller is told, if that is another one. */
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
    // Between two of its epochs another controller may have decided.
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
        logger.error({ error: String(error) }, 'what needs a GPU could not be taken up; it is tried again');
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
      // One that never came about has said so.
      () => undefined,
    );
  }

  private tell(channel: string, message: JsonValue): void {
    this.dependencies.state.publish(channel, message).catch((error: unknown) => {
      this.dependencies.logger.warn({ channel, error: String(error) }, 'another controller was not told');
    });
  }
}

interface End {
  activationId: string;
  succeeded: boolean;
}

function isEnd(message: JsonValue): message is JsonObject & End {
  return isJsonObject(message) && typeof message.activationId === 'string' && typeof message.succeeded === 'boolean';
}

interface Refusal {
  controller: string;
  activationId: string;
  status: number;
  error: string;
}

function isRefusal(message: JsonValue): message is JsonObject & Refusal {
  return (
    isJsonObject(message) &&
    typeof message.controller === 'string' &&
    typeof message.activationId === 'string' &&
    typeof message.status === 'number' &&
    typeof message.error === 'string'
  );
}

/** Dependencies of GpuFence. */
interface GpuFenceDependencies {
  state: ClusterState;
  table: GpuTable;
  clock: Clock;
  logger: Logger;
  lease: Pick<LeaseKeeper, 'epoch'>;
}

/** Agents that start, or that missed the news, find the epoch for so long after it was told last, ms. */
const epochKeptMs = 60_000;
/** How often the agents' rows are looked at while a leader waits for them, ms. */
const fenceLookMs = 50;

/**
 * Keeps a decider that has begun from placing again what the one before it has placed: agents are told of its epoch, take no
 * older placement from then on, and tell which activations they have. An agent that has no current row, and may not know the epoch,
 * is not waited for once its row is out of date (5 s).
 */
export class GpuFence {
  constructor(private readonly dependencies: GpuFenceDependencies) {}

  /** Tells agents of the epoch, if this controller decides. */
  announce(): void {
    const { state, lease, logger } = this.dependencies;
    const { epoch } = lease;
    if (epoch === undefined) return;
    state.setRow(gpuDeciderTable, gpuDeciderKey, epoch, epochKeptMs).catch((error: unknown) => {
      logger.warn({ error: String(error) }, 'the nodes with GPUs were not told who decides; they are told again');
    });
  }

  /** Resolves when this controller decides and all agents with a current row know its epoch, or once `isOver` says so. */
  async passed(isOver: () => boolean): Promise<void> {
    const { clock, lease, table } = this.dependencies;
    while (!isOver()) {
      const { epoch: own } = lease;
      // One of an earlier release does not tell.
      if (own !== undefined && table.nodes().every(({ epoch = own }) => epoch >= own)) return;
      await sleep(clock, fenceLookMs);
    }
  }

  /** Whether a node has an activation, by another placement than the one that it comes back from. */
  isInHand(message: ActivationMessage): boolean {
    return this.dependencies.table
      .nodes()
      .flatMap(({ inHand = [] }) => inHand)
      .some((held) => held.activationId === message.activationId && !isCopyOf(message, held));
  }
}

/** Whether a message comes back from where `placement` has sent it. */
export function isCopyOf({ gpu }: ActivationMessage, placement: Pick<Placement, 'at' | 'epoch' | 'version'>): boolean {
  return gpu?.at === placement.at && gpu.epoch === placement.epoch && gpu.version === placement.version;
}
