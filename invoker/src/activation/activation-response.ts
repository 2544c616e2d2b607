import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { ActivationResponse } from '@gpuwhisk/common/entities/activation';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { CallOutcome, LostOutcome } from '../containers/container-factory.js';

/** The last log line of activations that ended in a developer error. */
export const developerErrorLogLine = 'The action did not initialize or run as expected. Log data might be missing.';

function failure(statusCode: ActivationResponse['statusCode'], error: JsonValue, size?: number): ActivationResponse {
  return size === undefined ? { statusCode, result: { error } } : { statusCode, result: { error }, size };
}

/** A whisk internal error with the given text. */
export function whiskError(text: string): ActivationResponse {
  return failure(ActivationStatus.whiskError, text);
}

/** An application error with the given text. */
export function applicationError(text: string): ActivationResponse {
  return failure(ActivationStatus.applicationError, text);
}

/** A developer error with the given text. */
export function developerError(text: string): ActivationResponse {
  return failure(ActivationStatus.developerError, text);
}

/** `text: detail`, or `text.` when there is no detail. */
function withDetail(text: string, detail: string): string {
  return detail === '' ? `${text}.` : `${text}: ${detail}`;
}

/** OpenWhisk's text; where the limit is told, as of actions with a GPU, which OpenWhisk lacks, also limit, use and remedy. */
function exhaustedMemory({ memory }: LostOutcome): string {
  const text = 'The action exhausted its memory and was aborted.';
  if (memory === undefined) return text;
  const { limitMiB, usedMiB } = memory;
  const used = usedMiB === undefined ? '' : `, and it used ${usedMiB} MB`;
  return `${text} Its limit is ${limitMiB} MB of host memory${used}; --memory sets a higher limit.`;
}

const MiB = 1024 * 1024;

/** As exhaustedMemory; after large code, which takes much of the limit while it is loaded, also how much of which limit. */
function exhaustedByLoad(outcome: LostOutcome, { codeBytes, memoryMiB }: LoadFacts): string {
  const text = exhaustedMemory(outcome);
  if (codeBytes === undefined) return text;
  const code = `code of ${Math.ceil(codeBytes / MiB)} MB`;
  return `${text} Its ${code}, and what that extracts to, are in memory while it is loaded: --memory sets a higher limit than ${memoryMiB} MB.`;
}

/** What the text about a failed init tells of. */
interface LoadFacts {
  /** The action's limits. */
  timeoutMs: number;
  memoryMiB: number;
  /** Size of large code, bytes; undefined of other code. */
  codeBytes: number | undefined;
}

/** The response of an activation whose init failed (OpenWhisk's ActivationResponse.processInitResponseContent). */
export function initResponse(outcome: Exclude<CallOutcome, { type: 'ok' }>, facts: LoadFacts): ActivationResponse {
  switch (outcome.type) {
    case 'error':
      return developerError(outcome.error ?? withDetail('The action failed during initialization', outcome.body));
    case 'timeout':
      return developerError(
        `The action exceeded its time limits of ${facts.timeoutMs} milliseconds during initialization.`,
      );
    case 'lost':
      return developerError(
        outcome.oomKilled ? exhaustedByLoad(outcome, facts) : 'The action did not initialize and exited unexpectedly.',
      );
    case 'result':
    case 'oversize':
    case 'unavailable':
      return whiskError('Failed to provision resources to run the action.');
  }
}

/**
 * The response of an activation from how its run ended (OpenWhisk's ActivationResponse.processRunResponseContent).
 * `timeoutMs` is the action's time limit, `maxResultBytes` the bound that an oversize result broke.
 */
export function runResponse(outcome: CallOutcome, timeoutMs: number, maxResultBytes: number): ActivationResponse {
  switch (outcome.type) {
    case 'result': {
      const { result, bytes } = outcome;
      if (!Array.isArray(result) && result.error !== undefined) {
        return failure(ActivationStatus.applicationError, result.error, bytes);
      }
      return { statusCode: ActivationStatus.success, result, size: bytes };
    }
    case 'oversize':
      return failure(
        ActivationStatus.applicationError,
        `The action produced a response that exceeded the allowed length: ${outcome.bytes} > ${maxResultBytes} bytes. The truncated response was: ${outcome.head}`,
        outcome.bytes,
      );
    case 'error':
      return developerError(
        outcome.error ?? withDetail('The action did not produce a valid JSON or JSON Array response', outcome.body),
      );
    case 'timeout':
      return developerError(`The action exceeded its time limits of ${timeoutMs} milliseconds.`);
    case 'lost':
      return developerError(
        outcome.oomKilled
          ? exhaustedMemory(outcome)
          : 'The action did not produce a valid response and exited unexpectedly.',
      );
    case 'ok':
    case 'unavailable':
      return whiskError('Failed to provision resources to run the action.');
  }
}
