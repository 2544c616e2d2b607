// The outcome of a call from the bytes that a runtime answered, also where several requests run as one batch.
import { isJsonObject, isNestedTooDeeply, withoutHalfPairs } from '@gpuwhisk/common/json';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { CallOutcome, CallLimits, RunRequest } from '../container-factory.js';
import { decodeParts, maxFrameBytes } from './frames.js';
import { withoutPartialCharacter } from './log-collector.js';

/** OpenWhisk's text about a result that is no object or array. */
const noDictionary = 'The action did not return a dictionary or array.';

/** Parses JSON; undefined if it is not, or nests so deeply that it could not be written again. */
export function parseJson(text: string): unknown {
  try {
    // As it will be stored, so that an answer and its record say the same.
    const value: unknown = JSON.parse(withoutHalfPairs(text));
    return isNestedTooDeeply(text) ? undefined : value;
  } catch {
    // An answer that is not JSON is an ordinary thing for a function to give; the caller reports it.
    return undefined;
  }
}

/** The outcome of a run that was answered in good order with `text` of `bytes` bytes. */
export function resultOutcome(text: string, bytes: number): CallOutcome {
  const result = parseJson(text);
  return isJsonObject(result) || Array.isArray(result)
    ? { type: 'result', result, bytes }
    : { type: 'error', body: text };
}

/** The outcome of a run whose answer of `bytes` bytes, which begins with `read`, is too long. */
export function oversizeOutcome(read: Buffer, truncationBytes: number, bytes: number): CallOutcome {
  const head = withoutPartialCharacter(read.subarray(0, truncationBytes)).toString();
  return { type: 'oversize', head, bytes };
}

/** The outcome of an answer that is an error: its `error` field is the message. */
export function errorOutcome(text: string): CallOutcome {
  const parsed = parseJson(text);
  if (!isJsonObject(parsed) || parsed.error === undefined) return { type: 'error', body: text };
  const message = typeof parsed.error === 'string' ? parsed.error : JSON.stringify(parsed.error);
  return { type: 'error', error: message, body: text };
}

/** As resultOutcome, of a runtime that reads no JSON and passes on what the function returned. */
export function unreadOutcome(text: string, bytes: number): CallOutcome {
  const outcome = resultOutcome(text, bytes);
  return outcome.type === 'error' ? { type: 'error', error: noDictionary, body: '' } : outcome;
}

/** The outcome of a batch whose requests such a runtime ran one after the other: an entry that is a text is an error. */
export function resultsOutcome(payload: Buffer): CallOutcome {
  const parts = decodeParts(payload);
  if (parts === undefined) return { type: 'error', body: payload.toString() };
  const result = parts.map(([name, bytes]): JsonValue => {
    const text = bytes.toString();
    if (name !== 'result') return text;
    const one = unreadOutcome(text, bytes.length);
    return one.type === 'result' ? one.result : noDictionary;
  });
  return { type: 'result', result, bytes: payload.length };
}

/** Several requests of one action as one; all but their values is the first one's. */
export function batchOf(requests: readonly [RunRequest, ...RunRequest[]]): RunRequest {
  const values = requests.map(({ value }) => value);
  return { ...requests[0], value: values, batch: String(values.length) };
}

/** The limits of a batch's run: whatever a runtime may send is read, as a result that is too large fails its own request. */
export function batchLimits(limits: CallLimits): CallLimits {
  return { ...limits, maxResultBytes: maxFrameBytes };
}

/**
 * The outcomes of the `size` requests of a batch whose run came to `outcome`: each gets its own entry of the result. An
 * entry that is a text is an error of that request; a batch that failed as a whole failed for each. Whatever a request
 * gets is held to `limits`, an answer that is no JSON too.
 */
export function outcomesOf(outcome: CallOutcome, size: number, limits: CallLimits): CallOutcome[] {
  const forEach = (one: CallOutcome): CallOutcome[] => Array.from({ length: size }, () => one);
  if (outcome.type === 'error') return forEach(cutError(outcome, limits));
  if (outcome.type !== 'result') return forEach(outcome);
  const { result } = outcome;
  if (!Array.isArray(result) || result.length !== size) {
    const error = `The action was given ${size} requests and returned no array of as many results.`;
    return forEach({ type: 'error', error, body: '' });
  }
  return result.map((entry): CallOutcome => {
    if (typeof entry === 'string') return cutError({ type: 'error', error: entry, body: '' }, limits);
    const text = JSON.stringify(entry);
    const bytes = Buffer.byteLength(text);
    if (bytes > limits.maxResultBytes) return oversizeOutcome(Buffer.from(text), limits.truncationBytes, bytes);
    if (!isJsonObject(entry) && !Array.isArray(entry)) return { type: 'error', error: noDictionary, body: '' };
    return { type: 'result', result: entry, bytes };
  });
}

/** An error whose text is longer than a result may be is told like such a result. */
function cutError(
  outcome: Extract<CallOutcome, { type: 'error' }>,
  { maxResultBytes, truncationBytes }: CallLimits,
): CallOutcome {
  const text = outcome.error ?? outcome.body;
  const bytes = Buffer.byteLength(text);
  if (bytes > maxResultBytes) return oversizeOutcome(Buffer.from(text), truncationBytes, bytes);
  return outcome.error === undefined ? outcome : { ...outcome, body: '' };
}
