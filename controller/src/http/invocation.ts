import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { ActivationStatus, activationResult, activationToApi } from '@gpuwhisk/common/entities/activation';
import type { ActivationStatusCode } from '@gpuwhisk/common/entities/activation';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import { malformedQuery, parametersNotAllowed, deprecatedKind } from '@gpuwhisk/common/errors';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import type { Answer } from './answer.js';
import { booleanParameter, parseInt32 } from './request.js';
import type { InvokeOutcome } from '../invoke/invoke-service.js';
import { resolveKind } from '@gpuwhisk/common/runtimes';

/** Options of an invocation's answer. */
export interface InvokeOptions {
  blocking: boolean;
  /** Whether to answer with the result instead of the whole record. */
  result: boolean;
  /** How long a blocking caller waits, ms. */
  waitMs: number;
}

/** Reads the query of an invocation. Throws ApiError (400). */
export function readInvokeOptions(query: URLSearchParams, maxWaitMs: number): InvokeOptions {
  return {
    blocking: booleanParameter(query, 'blocking', false),
    result: booleanParameter(query, 'result', false),
    waitMs: waitParameter(query, maxWaitMs),
  };
}

function waitParameter(query: URLSearchParams, maxWaitMs: number): number {
  const text = query.get('timeout');
  if (text === null) return maxWaitMs;
  const waitMs = parseInt32(text);
  if (waitMs === undefined || waitMs < 1 || waitMs > maxWaitMs) {
    throw malformedQuery('timeout', `Timeout must be number of milliseconds up to ${maxWaitMs}.`);
  }
  return waitMs;
}

/**
 * Refuses arguments that would override final parameters (those with a value, if the action has annotation `final: true`).
 * Refuses actions that cannot be invoked. Throws ApiError (400).
 */
export function checkInvocable(action: WhiskAction, payload: JsonObject, manifest: RuntimeManifest): void {
  if (parameterValue(action.annotations, 'final') === true) {
    for (const { key, value } of action.parameters) {
      if (value !== null && Object.hasOwn(payload, key)) throw parametersNotAllowed();
    }
  }
  checkNotDeprecated(action.exec.kind, manifest);
}

const httpStatuses: Record<ActivationStatusCode, number> = {
  [ActivationStatus.success]: 200,
  [ActivationStatus.applicationError]: 502,
  [ActivationStatus.developerError]: 502,
  [ActivationStatus.whiskError]: 500,
};

/** Header with the id of the activation behind an answer. */
export const activationIdHeader = 'x-openwhisk-activation-id';

/** The answer to a caller that does not wait for the activation. */
export function acceptedAnswer(activationId: string): Answer {
  return { status: 202, body: `{"activationId":"${activationId}"}`, headers: [activationIdHeader, activationId] };
}

/** The answer to the caller of an invocation. */
export function invocationAnswer(outcome: InvokeOutcome, resultOnly: boolean): Answer {
  if (outcome.type === 'accepted') {
    return acceptedAnswer(outcome.activationId);
  }
  const { activation } = outcome;
  // An array is answered alone, also to a caller that asked for the record.
  const bare = resultOnly || Array.isArray(activation.response.result);
  return {
    status: httpStatuses[activation.response.statusCode],
    body: JSON.stringify(bare ? activationResult(activation) : activationToApi(activation)),
    headers: [activationIdHeader, activation.activationId],
  };
}

/** Refuses a kind whose actions may only be read and deleted. Throws ApiError (400). */
export function checkNotDeprecated(kind: string, manifest: RuntimeManifest): void {
  if (resolveKind(manifest, kind)?.deprecated === true) throw deprecatedKind(kind);
}
