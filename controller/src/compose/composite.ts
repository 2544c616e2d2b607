import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { ActivationResponse } from '@gpuwhisk/common/entities/activation';
import { isSequence } from '@gpuwhisk/common/entities/exec-codec';
import { isTruthyAnnotation } from '@gpuwhisk/common/entities/parameters';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { ResolvedAction } from '../actions/action-resolver.js';
import type { InvokeOutcome } from '../invoke/invoke-service.js';

/** What an activation is given. */
export type Payload = JsonObject | JsonValue[];

/** What one composition and those nested in it have invoked so far. */
export interface CompositionCount {
  components: number;
  conductors: number;
}

/** Counts that a component goes on with: those of the sequence or the composition that it is part of. */
export interface InheritedCounts {
  sequence?: { actions: number };
  composition?: CompositionCount;
}

/** What a running sequence or composition can do. */
export interface Stage {
  /** The most actions of a sequence, or components of a composition. */
  readonly maxLength: number;
  /** Whether all that a caller's one invocation may come to was invoked. */
  readonly exhausted: boolean;
  /** Invokes a component and waits for it, for its time limit and a minute. Throws where that fails. */
  invoke(component: ResolvedAction, payload: Payload, counts: InheritedCounts): Promise<InvokeOutcome>;
  /** The same for the code of an action, also where it is a conductor. */
  invokeCode(action: ResolvedAction, payload: Payload): Promise<InvokeOutcome>;
}

/** Whether a component is a conductor's composition; the annotation means nothing on a sequence. */
export function isConductor(action: WhiskAction): boolean {
  return !isSequence(action.exec) && isTruthyAnnotation(action.annotations, 'conductor');
}

/** Whether the controller runs the action, by running others. */
export function isComposite(action: WhiskAction): boolean {
  return isSequence(action.exec) || isTruthyAnnotation(action.annotations, 'conductor');
}

/** An end that no component's own result is. */
export function failure(statusCode: ActivationResponse['statusCode'], error: string): ActivationResponse {
  return { statusCode, result: { error } };
}

/** The composition or sequence itself went against a rule. */
export function applicationError(text: string): ActivationResponse {
  return failure(ActivationStatus.applicationError, text);
}

/** The platform failed. */
export function whiskError(text: string): ActivationResponse {
  return failure(ActivationStatus.whiskError, text);
}
