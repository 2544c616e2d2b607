import { isJsonObject } from '@gpuwhisk/common/json';
import type { CallLimits, Outcome, RunRequest } from './container-factory.js';
import { maxFrameBytes } from './process/frame-reader.js';

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
 * entry that is a text is an error of that request; a batch that failed as a whole failed for each.
 */
export function outcomesOf(outcome: Outcome, size: number, { maxResultBytes, truncationBytes }: CallLimits): Outcome[] {
  if (outcome.type !== 'result') return Array.from({ length: size }, () => outcome);
  const { result } = outcome;
  if (!Array.isArray(result) || result.length !== size) {
    const error = `The action was given ${size} requests and returned no array of as many results.`;
    return Array.from({ length: size }, () => ({ type: 'error', error, body: '' }));
  }
  return result.map((entry): Outcome => {
    if (typeof entry === 'string') return { type: 'error', error: entry, body: '' };
    const text = JSON.stringify(entry);
    const bytes = Buffer.byteLength(text);
    if (!isJsonObject(entry) && !Array.isArray(entry)) return { type: 'error', body: text };
    if (bytes <= maxResultBytes) return { type: 'result', result: entry, bytes };
    return { type: 'oversize', head: Buffer.from(text).toString('utf8', 0, truncationBytes), bytes };
  });
}
