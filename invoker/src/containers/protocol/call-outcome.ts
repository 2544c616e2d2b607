// Outcomes of calls and batches from the bytes that a runtime answered.
import { isJsonObject, isNestedTooDeeply, withoutHalfPairs } from '@gpuwhisk/common/json';
import type { JsonValue } from '@gpuwhisk/common/json';
import { mostSmallBytes } from '@gpuwhisk/common/entities/large-code';
import type { CallOutcome, CallLimits, RunRequest } from '../container-factory.js';
import { decodeParts, maxFrameBytes } from './frames.js';
import { withoutPartialCharacter } from './log-collector.js';

/** OpenWhisk's text for a result that is no object or array. */
const noDictionary = 'The action did not return a dictionary or array.';

/** Parses JSON; undefined if the text is no JSON, or nests too deeply to be serialized again. */
export function parseJson(text: string): unknown {
  try {
    // Parsed as the record will be stored, so that answer and record agree.
    const value: unknown = JSON.parse(withoutHalfPairs(text));
    return isNestedTooDeeply(text) ? undefined : value;
  } catch {
    // Functions may answer with other text than JSON, which the caller reports.
    return undefined;
  }
}

/** A log frame's payload, parsed. */
export type LogPayload = { us?: unknown; direct?: unknown } | null | undefined;

/** A run's time by the runtime's own figure, at most `seenMs`; without a figure `seenMs`, the time seen from outside; ms. */
export function runTimeMs(told: LogPayload, seenMs: number): number {
  return typeof told?.us === 'number' && told.us >= 0 ? Math.min(told.us / 1000, seenMs) : seenMs;
}

/** The size of an input in a function's report of it; undefined if the report is malformed. */
export function toldSize(payload: Buffer): number | undefined {
  const told = parseJson(payload.toString()) as { size?: unknown } | null | undefined;
  return typeof told?.size === 'number' && told.size >= 0 ? told.size : undefined;
}

/** The outcome of a run whose runtime reported success with `text` of `bytes` bytes. */
export function resultOutcome(text: string, bytes: number): CallOutcome {
  const result = parseJson(text);
  return isJsonObject(result) || Array.isArray(result)
    ? { type: 'result', result, bytes }
    : { type: 'error', body: text };
}

/** The outcome of a run whose result is taken as bytes. */
export function takenOutcome(payload: Buffer, take: (bytes: Buffer) => void): CallOutcome {
  // A short payload lies in a buffer that others are read into; a large one has its own.
  take(payload.length > mostSmallBytes ? payload : Buffer.from(payload));
  return { type: 'result', result: {}, bytes: payload.length };
}

/** The outcome of a run whose answer of `bytes` bytes is too long; `read` is its beginning. */
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

/** As resultOutcome, for a runtime that passes on the function's text without parsing JSON. */
export function unreadOutcome(text: string, bytes: number): CallOutcome {
  const outcome = resultOutcome(text, bytes);
  return outcome.type === 'error' ? { type: 'error', error: noDictionary, body: '' } : outcome;
}

/** The outcome of a batch whose requests such a runtime ran one after another: an entry that is a string is an error. */
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

/** Several requests of one action as one: an array of their values, with the other fields of the first. */
export function batchOf(requests: readonly [RunRequest, ...RunRequest[]]): RunRequest {
  const values = requests.map(({ value }) => value);
  return { ...requests[0], value: values, batch: String(values.length) };
}

/** A batch of `size` equal requests. */
export function repeated(request: RunRequest, size: number): RunRequest {
  const requests = Array.from({ length: size }, () => request);
  return batchOf([request, ...requests.slice(1)]);
}

/**
 * The limits of a batch's run. All of a runtime's answer is read, because a result that is too large fails only its own
 * request.
 */
export function batchLimits(limits: CallLimits): CallLimits {
  return { ...limits, maxResultBytes: maxFrameBytes };
}

/**
 * The outcomes of the `size` requests of a batch whose run ended with `outcome`: each request gets its entry of the result.
 * An entry that is a string is that request's error; a failure of the whole batch is each request's failure. `limits` apply
 * to each request's result, also to an answer that is no JSON.
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

/** An error whose text exceeds the bound on results becomes an oversize outcome. */
function cutError(
  outcome: Extract<CallOutcome, { type: 'error' }>,
  { maxResultBytes, truncationBytes }: CallLimits,
): CallOutcome {
  const text = outcome.error ?? outcome.body;
  const bytes = Buffer.byteLength(text);
  if (bytes > maxResultBytes) return oversizeOutcome(Buffer.from(text), truncationBytes, bytes);
  return outcome.error === undefined ? outcome : { ...outcome, body: '' };
}

/** Whether a request has no result, or an error for one. */
export function isFailure(outcome: CallOutcome): boolean {
  if (outcome.type === 'result') return isJsonObject(outcome.result) && outcome.result.error !== undefined;
  return outcome.type !== 'oversize';
}

/** Whether a fault on the GPU may have made a call fail. Results of a batch are texts where a request has failed. */
export function mayHaveFailed(outcome: CallOutcome): boolean {
  if (outcome.type === 'result' && Array.isArray(outcome.result)) {
    return outcome.result.some((one) => typeof one === 'string' || (isJsonObject(one) && one.error !== undefined));
  }
  return isFailure(outcome) && ['result', 'error'].includes(outcome.type);
}
