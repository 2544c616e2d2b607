// What an instance of a function serves, by profile or by the times of its runs.
import type { FunctionState, InstanceState, ServedRates } from '../view/view.js';

/**
 * Requests per second that an instance serves with full batches: as profiled, else by its time alone, stretched where its
 * share is less than what it fills, else by its last runs as they were served. Undefined: its time is not known.
 */
export function servedBy(
  { served, task, runMs }: FunctionState,
  [one]: readonly Pick<InstanceState, 'share'>[],
): ServedRates | undefined {
  if (served !== undefined) return served;
  const { soloMs, features, batch, share = 1 } = task;
  if (soloMs !== undefined && soloMs > 0 && features !== undefined) {
    const rateAt = (given: number): number => (batch * 1000) / (soloMs * Math.max(1, features.smUtil / given));
    const { request, limit } = one?.share ?? { request: share, limit: share };
    return { request: rateAt(request), limit: rateAt(limit) };
  }
  const ms = runMs ?? soloMs ?? 0;
  if (!(ms > 0)) return undefined;
  const rate = (batch * 1000) / ms;
  return { request: rate, limit: rate };
}
