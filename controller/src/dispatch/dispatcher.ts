import { busMetrics } from '@gpuwhisk/common/metrics';
import type { BusMetrics, Metrics } from '@gpuwhisk/common/metrics';
import type { MessageBus, Receipt, Subscription } from '@gpuwhisk/common/bus/message-bus';
import { TopicFullError } from '@gpuwhisk/common/bus/message-bus';
import { newActivationId } from '@gpuwhisk/common/ids';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { gpuNeedOf, readGpuAnnotation } from '@gpuwhisk/common/entities/gpu-annotation';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import type { GpuNeed } from '@gpuwhisk/common/gpu';
import type {
  AcknowledgementMessage,
  ActivationMessage,
  CombinedMessage,
  CompletionMessage,
} from '@gpuwhisk/common/messages';
import { activationMessageText, completedTopic, ownerOf, readAcknowledgement } from '@gpuwhisk/common/messages';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { MalformedError } from '@gpuwhisk/common/entities/malformed';
import { isApiError, noGpu, notAllowed, overloaded, queueFull, storeFull } from '@gpuwhisk/common/errors';
import type { ApiError } from '@gpuwhisk/common/errors';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Tracer } from '@gpuwhisk/common/tracing';
import type { TrainingRun } from '@gpuwhisk/common/training';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { GpuScheduler } from '../gpu/scheduler/gpu-scheduler.js';
import type { InFlight } from '../entitlement/in-flight.js';
import { withinShare } from '../entitlement/limits.js';
import { activationMessage, mergedArguments } from '../invoke/activation-message.js';
import { inInvokeSpan } from '../invoke/invoke-span.js';
import { BlockingWaits } from './blocking-waits.js';
import type { InvokeOutcome, InvokeRequest, InvokeService } from '../invoke/invoke-service.js';

/** Dependencies of Dispatcher. */
export interface DispatcherDependencies {
  bus: MessageBus;
  clock: Clock;
  random: Random;
  inFlight: InFlight;
  logger: Logger;
  /** The store of the records; a blocking caller's result may come without a message. */
  store: Pick<ArtifactStore, 'get' | 'isFull'>;
  /** Absent: nothing is counted. */
  metrics?: Metrics;
  /** This controller's number; acknowledgements arrive on `completed<number>`. */
  instance: number;
  /** The topic of the invoker that runs an activation of the action; undefined if no invoker can. */
  chooseInvoker: (action: WhiskAction, namespace: string, activationId: string) => string | undefined;
  /** Called for every activation that has completed (with the message) or was not sent. */
  onCompleted?: (activationId: string, message?: CompletionMessage | CombinedMessage) => void;
  /** Schedules actions that need a GPU; absent: such actions are refused. */
  gpu?: Pick<GpuScheduler, 'open' | 'check' | 'submit' | 'submitSample' | 'submitLaunch' | 'ended'>;
  /** Absent: nothing is traced. */
  tracer?: Tracer;
  /** Largest part of a GPU in percent for runs of namespaces without their own limit; absent: the whole GPU. */
  maxGpuShare?: number | undefined;
  /** Whether actions of other namespaces may be executed but not read. Default false. */
  sharedPackagesExecuteOnly?: boolean;
}

type Send = (message: ActivationMessage) => Receipt;

/** How often an activation retries to enter a full topic. */
const roomLooks = 5;
const roomLookMs = 10;
/** Most activations that wait for a full topic; more are refused at once. */
const maxWaitingForRoom = 1000;
/** Most acknowledgements in processing, which are consumed as they arrive. */
const maxAcknowledgements = 10_000;

/** Sends activations to invokers and returns the results of blocking ones to their callers. */
export class Dispatcher implements InvokeService {
  private readonly waits: BlockingWaits;
  private subscription: Subscription | undefined;
  private readonly counts: BusMetrics | undefined;
  private waitingForRoom = 0;

  constructor(private readonly dependencies: DispatcherDependencies) {
    this.waits = new BlockingWaits(dependencies);
    this.counts = dependencies.metrics && busMetrics(dependencies.metrics.registry);
  }

  /** Starts to consume acknowledgements; their topic must exist. */
  async open(): Promise<void> {
    const topic = completedTopic(this.dependencies.instance);
    this.subscription = await this.dependencies.bus.subscribe(
      topic,
      topic,
      { maxInFlight: maxAcknowledgements },
      (delivery) => {
        this.takeAcknowledgement(topic, delivery.message);
        delivery.done();
      },
    );
    await this.dependencies.gpu?.open((activationId, error) => this.refuse(activationId, error));
  }

  /** Answers all waiting callers with their ids, and later ones as soon as their activation is accepted. */
  async close(): Promise<void> {
    await this.subscription?.close();
    // Activations that still wait for a topic are refused soon.
    while (this.waitingForRoom > 0) await sleep(this.dependencies.clock, roomLookMs);
    this.waits.close();
  }

  /** Number of waiting blocking callers. */
  get waiting(): number {
    return this.waits.size;
  }

  invoke(request: InvokeRequest): Promise<InvokeOutcome> {
    const { tracer } = this.dependencies;
    // Samples and launches are no requests.
    if (tracer === undefined || request.sample !== undefined || request.launch !== undefined) return this.send(request);
    return this.sendTraced(tracer, request);
  }

  private async sendTraced(tracer: Tracer, request: InvokeRequest): Promise<InvokeOutcome> {
    const { clock, random } = this.dependencies;
    const activationId = request.activationId ?? newActivationId(clock.now(), random);
    return inInvokeSpan(tracer, request, activationId, (trace) => this.send({ ...request, activationId, trace }));
  }

  private async send(request: InvokeRequest): Promise<InvokeOutcome> {
    const { clock, random, inFlight, instance, store } = this.dependencies;
    const { identity, action, cause, payload, training } = request;
    // A component belongs to an activation that was accepted.
    if (cause === undefined && store.isFull === true) throw storeFull();
    const activationId = request.activationId ?? newActivationId(clock.now(), random);
    const need = this.gpuNeed(request);
    const timeoutMs = need?.timeoutMs ?? action.limits.timeout;
    if (request.sample === undefined && request.launch === undefined) {
      const begun = inFlight.begin(identity, { activationId, timeoutMs, bounded: cause === undefined, gpu: need });
      if (begun !== undefined) await begun;
    }
    const origin = { activationId, instance, nowMs: clock.now() };
    const message = activationMessage(request, mergedArguments(action, payload), origin);
    const owner = ownerOf(action.namespace);
    if (this.dependencies.sharedPackagesExecuteOnly === true && owner !== identity.namespace.name) {
      message.executeOnly = true;
    }
    if (training !== undefined) message.training = training;
    // Registered before the send, as an embedded bus may deliver, run and acknowledge within it.
    const result = request.blocking
      ? this.waits.wait(identity.namespace.name, activationId, request.waitMs)
      : undefined;
    let receipt;
    try {
      const sized = need && { ...need, inputBytes: inputBytesOf(message) };
      const send = this.senderFor(request, activationId, sized);
      receipt = this.trySend(send, message) ?? (await this.sendWithRoom(send, message));
    } catch (error) {
      this.withdraw(activationId);
      throw this.refusal(error);
    }
    const outcome = await result;
    if (outcome?.type === 'completed') return outcome;
    try {
      await receipt.synced();
    } catch (error) {
      // The message may be lost, so that nothing is kept for the activation and no copy may start on a GPU.
      this.withdraw(activationId);
      this.dependencies.gpu?.ended(activationId, false);
      throw this.refusal(error);
    }
    return { type: 'accepted', activationId };
  }

  /** Removes an activation that was not accepted. */
  private withdraw(activationId: string): void {
    this.waits.forget(activationId);
    this.dependencies.inFlight.end(activationId);
    this.dependencies.onCompleted?.(activationId);
  }

  /** The GPU need of an invocation, or undefined for CPU actions. Throws ApiError (400, 429, 503). */
  private gpuNeed({ action, identity, sample, training }: InvokeRequest): GpuNeed | undefined {
    const own = gpuNeedOfAction(action);
    if (own === undefined) return undefined;
    const asked = training === undefined ? own : trainingNeed(own, training);
    const { gpu, maxGpuShare } = this.dependencies;
    // The platform itself chooses the share of a sample, and its batch, which gathers no other requests.
    const need =
      sample === undefined ? withinShare(asked, identity.limits.maxGpuShare ?? maxGpuShare) : { ...asked, batch: 1 };
    if (gpu === undefined) throw noGpu();
    gpu.check(need);
    return need;
  }

  /** The function that sends an activation. Throws ApiError (503). */
  private senderFor(
    { action, identity, sample, launch }: InvokeRequest,
    activationId: string,
    need: GpuNeed | undefined,
  ): Send {
    const { bus, chooseInvoker, gpu } = this.dependencies;
    if (sample !== undefined) {
      if (need === undefined || gpu === undefined) throw noGpu();
      return (message) => gpu.submitSample({ ...message, gpuNeed: need }, need, sample);
    }
    if (launch !== undefined) {
      if (need === undefined || gpu === undefined) throw noGpu();
      return (message) => gpu.submitLaunch({ ...message, gpuNeed: need }, need, launch);
    }
    if (need !== undefined && gpu !== undefined) return (message) => gpu.submit({ ...message, gpuNeed: need }, need);
    const topic = chooseInvoker(action, identity.namespace.name, activationId);
    if (topic === undefined) throw overloaded();
    return (message) => bus.send(topic, message as unknown as JsonObject, activationMessageText(message));
  }

  /** Sends the message. Undefined if the topic is full and the caller may wait. */
  private trySend(send: Send, message: ActivationMessage): Receipt | undefined {
    try {
      return send(message);
    } catch (error) {
      if (error instanceof TopicFullError && this.waitingForRoom < maxWaitingForRoom) return undefined;
      throw error;
    }
  }

  /**
   * Retries for a short time while the topic is full. Callers that are refused at once retry at once, and that load slows
   * the platform.
   */
  private async sendWithRoom(send: Send, message: ActivationMessage): Promise<Receipt> {
    const { clock } = this.dependencies;
    for (let look = 1; look < roomLooks; look++) {
      this.waitingForRoom++;
      await sleep(clock, roomLookMs);
      this.waitingForRoom--;
      const receipt = this.trySend(send, message);
      if (receipt !== undefined) return receipt;
    }
    return send(message);
  }

  private refusal(error: unknown): ApiError {
    if (isApiError(error)) return error;
    if (error instanceof TopicFullError) return queueFull(error);
    this.dependencies.logger.error({ error: String(error) }, 'an activation could not be sent');
    return overloaded();
  }

  /** Answers the caller of an activation that is not run; returns false if no caller waits. */
  private refuse(activationId: string, error: ApiError): boolean {
    this.dependencies.inFlight.end(activationId);
    return this.waits.refuse(activationId, error);
  }

  private takeAcknowledgement(topic: string, message: JsonObject): void {
    try {
      this.acknowledge(readAcknowledgement(message));
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error;
      this.counts?.malformed(topic);
      this.dependencies.logger.warn(
        { topic, reason: error.message },
        'a message that is no acknowledgement was skipped',
      );
    }
  }

  private acknowledge(message: AcknowledgementMessage): void {
    if ('instance' in message) {
      const activationId = completedActivation(message);
      const mayHaveGpu = this.dependencies.inFlight.end(activationId);
      if (mayHaveGpu) this.dependencies.gpu?.ended(activationId, hasSucceeded(message), message.inputSize);
      this.dependencies.onCompleted?.(activationId, message);
    }
    // A result that exceeds the size of a message is in the record only.
    if (!('response' in message)) this.waits.ended(message.activationId);
    else if (typeof message.response === 'string') this.waits.ended(message.response);
    else this.waits.settle(message.response);
  }
}

/** Size of an activation's parameters as JSON, bytes. */
function inputBytesOf({ content }: ActivationMessage): number {
  return Buffer.byteLength(JSON.stringify(content ?? {}));
}

/**
 * The GPU need in an action's annotation `gpu`. Throws ApiError (400) for an invalid annotation that was stored unchecked.
 */
function gpuNeedOfAction({ annotations, limits }: WhiskAction): GpuNeed | undefined {
  const value = parameterValue(annotations, 'gpu');
  if (value === undefined) return undefined;
  try {
    return gpuNeedOf(readGpuAnnotation(value), limits.timeout);
  } catch (error) {
    throw notAllowed((error as Error).message);
  }
}

/** The need of a training job's run: best effort, with the GPUs and the time limit of the job. */
function trainingNeed(need: GpuNeed, { gpus, limitMs, checkpointMiB }: TrainingRun): GpuNeed {
  const asked: GpuNeed = { ...need, class: 'training', batch: 1, gpus, timeoutMs: limitMs };
  delete asked.sloMs;
  return checkpointMiB === undefined ? { ...asked, mustNotStop: true } : asked;
}

/** The id of the activation that no longer holds its slot. */
function completedActivation(message: CompletionMessage | CombinedMessage): string {
  if (!('response' in message)) return message.activationId;
  return typeof message.response === 'string' ? message.response : message.response.activationId;
}

/** Whether a message says that a run on a GPU succeeded. */
function hasSucceeded(message: CompletionMessage | CombinedMessage): boolean {
  if (message.isSystemError) return false;
  if (!('response' in message)) return message.isFailed !== true;
  return typeof message.response !== 'string' && message.response.response.statusCode === ActivationStatus.success;
}
