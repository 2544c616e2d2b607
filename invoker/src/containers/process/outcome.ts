import { isJsonObject } from '@gpuwhisk/common/json';
import type { Outcome } from '../container-factory.js';

/** Parses JSON; undefined if it is not. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // An answer that is not JSON is an ordinary thing for a function to give; the caller reports it.
    return undefined;
  }
}

/** The outcome of a run that was answered in good order with `text` of `bytes` bytes. */
export function resultOutcome(text: string, bytes: number): Outcome {
  const result = parseJson(text);
  return isJsonObject(result) || Array.isArray(result)
    ? { type: 'result', result, bytes }
    : { type: 'error', body: text };
}

/** The outcome of an answer that is an error: its `error` field is the message. */
export function errorOutcome(text: string): Outcome {
  const parsed = parseJson(text);
  if (!isJsonObject(parsed) || parsed.error === undefined) return { type: 'error', body: text };
  const message = typeof parsed.error === 'string' ? parsed.error : JSON.stringify(parsed.error);
  return { type: 'error', error: message, body: text };
}
