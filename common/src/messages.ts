import type { TopicOptions } from './bus/message-bus.js';
import type { JsonObject, JsonValue } from './json.js';
import type { WhiskActivation } from './entities/activation.js';
import type { Identity } from './entities/identity.js';
import type { GpuNeed, Placement } from './gpu.js';

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
  /** It is no request: a function's sample is run to measure it. It is run where it was placed, or not at all. */
  sample?: { maxMs: number };
}

/**
 * Topic `gpu<controller>`, which is durable: an activation that needs a GPU and has none yet, or none any more because
 * an agent refused its placement. The invoker sends that, and ends the activation's message once this one is synced.
 */
export interface UnplacedMessage {
  activation: ActivationMessage;
  /** Why the agent refused. */
  refused?: string;
  /** The invoker was started again before it had begun it: where it is to run is decided anew. */
  restarted?: true;
  /** An earlier life of the controller that hands it on may have placed it. */
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
export interface ResultMessage {
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
  /** Ours, of a run on a GPU: it did not succeed, by whoever's fault. */
  isFailed?: boolean;
}

/** Result and completion at once. */
export interface CombinedMessage extends ResultMessage {
  isSystemError: boolean;
  instance: InvokerInstanceId;
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
