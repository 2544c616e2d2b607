// Messages between controllers and invokers, and their codecs.
import type { TopicOptions } from './bus/message-bus.js';
import type { JsonObject, JsonValue } from './json.js';
import type { WhiskActivation } from './entities/activation.js';
import type { Identity } from './entities/identity.js';
import type { GpuNeed, Placement } from './gpu.js';
import type { TrainingRun } from './training.js';
import { isJsonObject } from './json.js';
import { activationStatusWords } from './entities/activation.js';
import { maxBatch } from './entities/gpu-annotation.js';
import { MalformedError, asObject, asString } from './entities/malformed.js';
import { checkTrainingRun } from './training.js';

/** `[id, start epoch ms, extra logging?]`, as OpenWhisk writes a transaction id. */
export type TransactionIdJson = [string, number, ...unknown[]];

/** A fully qualified action: `path` is `ns` or `ns/pkg`. */
export interface ActionReference {
  path: string;
  name: string;
  version?: string;
  /** `ns/bindingpkg` when invoked through a binding. */
  binding?: string;
}

/** The namespace that an action of `path`, `ns` or `ns/pkg`, belongs to. */
export function ownerOf(path: string): string {
  const end = path.indexOf('/');
  return end < 0 ? path : path.slice(0, end);
}

/** Topic `invoker<N>`: run an action. */
export interface ActivationMessage {
  transid: TransactionIdJson;
  action: ActionReference;
  /** The action document's revision. */
  revision: string;
  user: Identity;
  activationId: string;
  rootControllerIndex: { asString: string; instanceType: 'controller' };
  blocking: boolean;
  /** Merged arguments (object or, in sequences, array). */
  content?: JsonObject | JsonValue[];
  /** Keys of `content` that go to `/init` as environment. */
  initArgs: string[];
  lockedArgs: JsonObject;
  /** The invoking namespace may run the action's code and not read it. */
  executeOnly?: true;
  /** Ours: ids of the documents that the locked arguments are stored in. */
  lockedIn?: JsonObject;
  cause?: string;
  /** Context of the span above those of the activation: `traceparent` and `tracestate`, as W3C's Trace Context has them. */
  traceContext?: JsonObject;
  /** What the action's annotation `gpu` asks for. */
  gpuNeed?: GpuNeed;
  /** Where it is to run; set with `gpuNeed` on an invoker's topic. */
  gpu?: Placement;
  /** Why agents gave it back so far. */
  gpuRefusals?: string[];
  /**
   * No request: the invoker starts an instance and loads its code where it was placed, and runs nothing in it. It keeps no
   * record and never gives the message back.
   */
  launch?: true;
  /**
   * It is no request: a function's sample is run to measure it. It is run where it was placed, or not at all. With `batch`
   * so many requests of it are run as one.
   */
  sample?: { maxMs: number; batch?: number };
  /** It is one run of a training job. */
  training?: TrainingRun;
}

/**
 * Topic `gpu<controller>`, which is durable: an activation that needs a GPU and has none yet, or none any more because
 * an agent refused its placement. The invoker sends that, and ends the activation's message once this one is synced.
 */
export interface UnplacedMessage {
  activation: ActivationMessage;
  /** Why the agent refused. */
  refused?: string;
  /** The invoker was started again before it had begun it: it is placed again. */
  restarted?: true;
  /** An earlier process of the controller that hands it on may have placed it. */
  seenBefore?: true;
}

/** The topic of activations that the scheduler of this controller has to place. */
export const unplacedTopic = (controller: number | string): string => `gpu${controller}`;

/** The invoker that an acknowledgement comes from. */
export interface InvokerInstanceId {
  instance: number;
  userMemory: string;
  instanceType: 'invoker';
  tags: string[];
  dedicatedNamespaces: string[];
  uniqueName?: string;
  displayedName?: string;
}

/** Topic `health`: an invoker is there. */
export interface PingMessage {
  name: InvokerInstanceId;
  /** False: it takes no more activations. */
  isEnabled?: boolean;
}

/** Topic `cacheInvalidation`: an entity was written or deleted. */
export interface InvalidationMessage {
  /** `ns/name` or `ns/pkg/name`. */
  key: { mainId: string; secondaryId?: string };
  /** Who says so, `controller<N>`; it ignores its own. */
  instanceId: string;
}

/** Result only: the slot is still in use. */
interface ResultMessage {
  transid: TransactionIdJson;
  /** The record, or just its id where it is too large for the bus. */
  response: WhiskActivation | string;
}

/** Completion only: the slot is free, the record is complete. */
export interface CompletionMessage {
  transid: TransactionIdJson;
  activationId: string;
  isSystemError: boolean;
  instance: InvokerInstanceId;
  /** Ours, of a run on a GPU: it did not succeed, for any reason. */
  isFailed?: boolean;
  /** Ours, of a run on a GPU: the size of its input that the function has reported. */
  inputSize?: number;
}

/** Result and completion at once. */
export interface CombinedMessage extends ResultMessage {
  isSystemError: boolean;
  instance: InvokerInstanceId;
  /** As in CompletionMessage. */
  inputSize?: number;
}

/** The topic of acknowledgements to a controller. */
export const completedTopic = (controller: number | string): string => `completed${controller}`;

/** What a controller that was started again is told of earlier activations is of no use to it. */
export const completedTopicOptions: TopicOptions = {
  durable: false,
  maxPendingMessages: 100_000,
  maxPendingBytes: Infinity,
};

/** On a topic that completedTopic names. */
export type AcknowledgementMessage = ResultMessage | CompletionMessage | CombinedMessage;

/** What may be part of a topic's name. */
const controllerName = /^[\w.-]{1,100}$/;
const activationId = /^[\w-]{1,100}$/;

/**
 * A message of an invoker's topic, of this platform or of an OpenWhisk; what older releases leave out is filled in, and what is
 * not known is kept. The message itself is not changed. Throws MalformedError.
 */
export function readActivationMessage(message: JsonObject): ActivationMessage {
  checkTransactionId(message.transid);
  const action = asObject(message.action, 'action malformed');
  asString(action.path, 'action malformed');
  asString(action.name, 'action malformed');
  checkOptional(action.version, 'string', 'action malformed');
  checkOptional(action.binding, 'string', 'action malformed');
  checkUser(message.user);
  checkActivationId(message.activationId);
  const { asString: controller } = asObject(message.rootControllerIndex, 'rootControllerIndex malformed');
  if (typeof controller !== 'string' || !controllerName.test(controller)) {
    throw new MalformedError('rootControllerIndex malformed');
  }
  if (typeof message.blocking !== 'boolean') throw new MalformedError('blocking malformed');
  checkOptional(message.cause, 'string', 'cause malformed');
  checkOptional(message.revision, 'string', 'revision malformed');
  checkOptional(message.executeOnly, 'boolean', 'executeOnly malformed');
  checkOptional(message.traceContext, 'object', 'traceContext malformed');
  checkSample(message.sample);
  checkTrainingRun(message.training);
  const { content = null, initArgs = [], lockedArgs = {} } = message;
  if (content !== null && typeof content !== 'object') throw new MalformedError('content malformed');
  if (!Array.isArray(initArgs) || initArgs.some((name) => typeof name !== 'string')) {
    throw new MalformedError('initArgs malformed');
  }
  if (!isJsonObject(lockedArgs)) throw new MalformedError('lockedArgs malformed');
  checkOptional(message.lockedIn, 'object', 'lockedIn malformed');
  return withDefaults(message, { initArgs, lockedArgs, revision: '' }) as unknown as ActivationMessage;
}

/** Texts of callers in messages: a caller is encoded once for many activations. */
const callers = new WeakMap<Identity, string>();

/** An activation's message as JSON. Its caller must not be changed after the first message. */
export function activationMessageText(message: ActivationMessage): string {
  const { user } = message;
  let caller = callers.get(user);
  if (caller === undefined) callers.set(user, (caller = JSON.stringify(user)));
  return `{"user":${caller},${JSON.stringify({ ...message, user: undefined }).slice(1)}`;
}

/** A message of what waits for a GPU, with the activation as readActivationMessage gives it. Throws MalformedError. */
export function readUnplacedMessage(message: JsonObject): UnplacedMessage {
  const activation = readActivationMessage(asObject(message.activation, 'activation malformed'));
  asObject((activation as { gpuNeed?: JsonValue }).gpuNeed, 'gpuNeed malformed');
  checkOptional(message.refused, 'string', 'refused malformed');
  return { ...message, activation } as unknown as UnplacedMessage;
}

/**
 * A message of a controller's topic `completed<N>`. Older releases call `instance` `invoker`. Throws MalformedError, also where
 * it is neither a result nor a completion.
 */
export function readAcknowledgement(message: JsonObject): AcknowledgementMessage {
  checkTransactionId(message.transid);
  const { response = null, instance = message.invoker ?? null } = message;
  if (response === null && instance === null) throw new MalformedError('neither a result nor a completion');
  if (response !== null) checkResponse(response);
  if (instance === null) return withDefaults(message, {}) as unknown as AcknowledgementMessage;
  if (!isJsonObject(instance)) throw new MalformedError('instance malformed');
  checkOptional(message.isSystemError, 'boolean', 'isSystemError malformed');
  checkOptional(message.isFailed, 'boolean', 'isFailed malformed');
  checkOptional(message.inputSize, 'number', 'inputSize malformed');
  if (response === null) checkActivationId(message.activationId);
  return withDefaults(message, { instance, isSystemError: false }) as unknown as AcknowledgementMessage;
}

/** A whole record, or its id. */
function checkResponse(response: JsonValue): void {
  if (typeof response === 'string') {
    checkActivationId(response);
    return;
  }
  const record = asObject(response, 'response malformed');
  checkActivationId(record.activationId);
  const { statusCode } = asObject(record.response, 'response malformed');
  if (typeof statusCode !== 'number' || activationStatusWords[statusCode] === undefined) {
    throw new MalformedError('response malformed');
  }
  if (!Array.isArray(record.annotations)) throw new MalformedError('response malformed');
}

function checkUser(value: JsonValue | undefined): void {
  const user = asObject(value, 'user malformed');
  asString(user.subject, 'user malformed');
  const namespace = asObject(user.namespace, 'user malformed');
  asString(namespace.name, 'user malformed');
  asString(namespace.uuid, 'user malformed');
  asString(asObject(user.authkey, 'user malformed').api_key, 'user malformed');
  asObject(user.limits, 'user malformed');
}

function checkActivationId(value: JsonValue | undefined): void {
  if (typeof value !== 'string' || !activationId.test(value)) throw new MalformedError('activationId malformed');
}

function checkTransactionId(value: JsonValue | undefined): void {
  const [id, startMs] = Array.isArray(value) ? value : [];
  if (typeof id !== 'string' || !Number.isFinite(startMs)) throw new MalformedError('transid malformed');
}

function checkSample(value: JsonValue | undefined): void {
  if (value === undefined || value === null) return;
  const { maxMs, batch = 1 } = asObject(value, 'sample malformed');
  const isBatch = typeof batch === 'number' && Number.isInteger(batch) && batch >= 1 && batch <= maxBatch;
  if (typeof maxMs !== 'number' || !(maxMs > 0) || !isBatch) throw new MalformedError('sample malformed');
}

/** Absent or null is no value, as in OpenWhisk. */
function checkOptional(
  value: JsonValue | undefined,
  type: 'string' | 'number' | 'boolean' | 'object',
  text: string,
): void {
  if (value !== undefined && value !== null && typeof value !== type) throw new MalformedError(text);
}

/** The message itself if it lacks none of `defaults`. */
function withDefaults(message: JsonObject, defaults: JsonObject): JsonObject {
  if (!lacksSome(message, defaults)) return message;
  const given = Object.entries(message).filter(([, value]) => value !== null);
  return { ...defaults, ...Object.fromEntries(given) };
}

/** Each message is looked at, so nothing is made for it. */
function lacksSome(message: JsonObject, defaults: JsonObject): boolean {
  for (const name in defaults) if (message[name] === undefined) return true;
  for (const name in message) if (message[name] === null) return true;
  return false;
}
