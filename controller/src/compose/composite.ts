// Common parts of sequences and compositions: counts, the invoker of components, results, records.
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { ActivationResponse, WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { isSequence } from '@gpuwhisk/common/entities/exec-codec';
import { isTruthyAnnotation, parameterValue } from '@gpuwhisk/common/entities/parameters';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { ResolvedAction } from '../actions/action-resolver.js';
import type { InvokeOutcome } from '../invoke/invoke-service.js';

/** The payload of an activation. */
export type Payload = JsonObject | JsonValue[];

/** Counts of the components invoked so far by a composition and those nested in it. */
export interface CompositionCount {
  components: number;
  conductors: number;
}

/** Counts that a component inherits from the sequence or composition around it. */
export interface InheritedCounts {
  sequence?: { actions: number };
  composition?: CompositionCount;
}

/** Invokes the components of a running sequence or composition. */
export interface ComponentInvoker {
  /** Most actions of a sequence, or components of a composition. */
  readonly maxLength: number;
  /** Whether one caller's invocation has reached its most activations. */
  readonly exhausted: boolean;
  /** Invokes a component and waits for its time limit plus one minute. Throws if the invocation fails. */
  invoke(component: ResolvedAction, payload: Payload, counts: InheritedCounts): Promise<InvokeOutcome>;
  /** As `invoke`, but always runs the action's code, also that of a conductor. */
  invokeCode(action: ResolvedAction, payload: Payload): Promise<InvokeOutcome>;
}

/** Whether an action is a conductor; the annotation has no meaning on a sequence. */
export function isConductor(action: WhiskAction): boolean {
  return !isSequence(action.exec) && isTruthyAnnotation(action.annotations, 'conductor');
}

/** Whether the controller runs the action by running other actions. */
export function isComposite(action: WhiskAction): boolean {
  return isSequence(action.exec) || isTruthyAnnotation(action.annotations, 'conductor');
}

/** A response that no component gave. */
function failure(statusCode: ActivationResponse['statusCode'], error: string): ActivationResponse {
  return { statusCode, result: { error } };
}

/** The response of a sequence or composition that broke a rule. */
export function applicationError(text: string): ActivationResponse {
  return failure(ActivationStatus.applicationError, text);
}

/** The response after a failure of the platform. */
export function whiskError(text: string): ActivationResponse {
  return failure(ActivationStatus.whiskError, text);
}

/** Totals of the components that a sequence or composition has run. */
export class ComponentTally {
  /** Ids of the components' activations, in order. */
  readonly ids: string[] = [];
  durationMs = 0;

  constructor(
    /** Largest memory limit so far; undefined before the first component. */
    public memoryMiB: number | undefined,
  ) {}

  /** Adds a finished component. */
  add({ activationId, duration, start, end, annotations }: WhiskActivation): void {
    this.ids.push(activationId);
    this.durationMs += duration ?? end - start;
    const limits = parameterValue(annotations, 'limits');
    const memory = isJsonObject(limits) ? limits.memory : undefined;
    if (typeof memory === 'number') this.memoryMiB = Math.max(this.memoryMiB ?? 0, memory);
  }
}

/**
 * The record of a sequence or composition. `action` is undefined if the action could not be read. `startMs` and `endMs` are
 * epoch ms.
 */
export function compositeRecord(
  message: ActivationMessage,
  action: WhiskAction | undefined,
  tally: ComponentTally,
  startMs: number,
  endMs: number,
  response: ActivationResponse,
): WhiskActivation {
  const { action: reference, cause, transid, user } = message;
  const annotations: Parameter[] = [
    { key: 'topmost', value: cause === undefined },
    { key: 'path', value: `${reference.path}/${reference.name}` },
    { key: 'kind', value: 'sequence' },
  ];
  if (action !== undefined && isConductor(action)) annotations.push({ key: 'conductor', value: true });
  if (cause !== undefined) annotations.push({ key: 'causedBy', value: 'sequence' });
  annotations.push({ key: 'waitTime', value: Math.max(0, startMs - transid[1]) });
  if (reference.binding !== undefined) annotations.push({ key: 'binding', value: reference.binding });
  if (action !== undefined && tally.memoryMiB !== undefined) {
    const { timeout, logs } = action.limits;
    annotations.push({ key: 'limits', value: { timeout, memory: tally.memoryMiB, logs, concurrency: 1 } });
  }
  return {
    namespace: user.namespace.name,
    name: reference.name,
    version: reference.version ?? '0.0.1',
    subject: user.subject,
    activationId: message.activationId,
    start: startMs,
    end: endMs,
    duration: tally.durationMs,
    ...(cause !== undefined && { cause }),
    response,
    logs: [...tally.ids],
    publish: false,
    annotations,
  };
}
