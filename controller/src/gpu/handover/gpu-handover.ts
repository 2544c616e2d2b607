import { RecentIds } from '@gpuwhisk/common/activations/recent-ids';
import type { Delivery, MessageBus, Receipt, Subscription, TopicOptions } from '@gpuwhisk/common/bus/message-bus';
import { ApiError } from '@gpuwhisk/common/errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ActivationMessage, UnplacedMessage } from '@gpuwhisk/common/messages';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { GpuFence } from './gpu-fence.js';
import type { LeaseKeeper } from '../../cluster/lease.js';

export interface GpuHandoverDependencies {
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

/** What the scheduler of a controller does with what comes from others. */
export interface HandoverListener {
  /** To be placed here, while this controller decides. */
  take(delivery: Delivery): void;
  /** This controller decides no more: what it took comes to another. */
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

  /** Sends an activation to whoever decides. Throws as MessageBus.send does. */
  send(message: UnplacedMessage): Receipt {
    const receipt = this.dependencies.bus.send(topic, message as unknown as JsonObject);
    this.sent.add(message.activation.activationId);
    return receipt;
  }

  /** The run of an activation is over: whoever decides is told, if it was sent there. */
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

/** Told of an activation that is not run; true if a caller waited and has got the error as its answer. */
export type OnRefused = (activationId: string, error: ApiError) => boolean;
