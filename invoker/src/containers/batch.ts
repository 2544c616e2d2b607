import { isJsonObject } from '@gpuwhisk/common/json';
import type { CallLimits, Outcome, RunRequest } from './container-factory.js';
import { maxFrameBytes } from './process/frame-reader.js';
import { noDictionary, oversizeOutcome } from './process/outcome.js';

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
export function outcomesOf(outcome: Outcome, size: number, limits: CallLimits): Outcome[] {
  const forEach = (one: Outcome): Outcome[] => Array.from({ length: size }, () => one);
  if (outcome.type === 'error') return forEach(cutError(outcome, limits));
  if (outcome.type !== 'result') return forEach(outcome);
  const { result } = outcome;
  if (!Array.isArray(result) || result.length !== size) {
    const error = `The action was given ${size} requests and returned no array of as many results.`;
    return forEach({ type: 'error', error, body: '' });
  }
  return result.map((entry): Outcome => {
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
  outcome: Extract<Outcome, { type: 'error' }>,
  { maxResultBytes, truncationBytes }: CallLimits,
): Outcome {
  const text = outcome.error ?? outcome.body;
  const bytes = Buffer.byteLength(text);
  if (bytes > maxResultBytes) return oversizeOutcome(Buffer.from(text), truncationBytes, bytes);
  return outcome.error === undefined ? outcome : { ...outcome, body: '' };
}
