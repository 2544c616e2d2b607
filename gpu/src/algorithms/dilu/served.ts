// What an instance of a function serves, by profile or by the times of its runs.
import type { GpuKind } from '@gpuwhisk/common/gpu';
import { profiledOn } from '../../view/shares.js';
import type { FunctionState, InstanceState, ServedRates, Task } from '../../view/view.js';

/**
 * Requests per second that an instance with the shares of its function's profile serves with full batches; of several kinds of
 * GPU those of the slowest one with a profile. At a limit that was not measured it serves as many as at the request. Undefined:
 * there is no profile for these kinds, or the owner has fixed the share.
 */
export function profiledRates(
  task: Pick<Task, 'profiledShares' | 'share'>,
  kinds: readonly GpuKind[],
): ServedRates | undefined {
  if (task.share !== undefined || task.profiledShares === undefined) return undefined;
  let slowest: ServedRates | undefined;
  for (const kind of kinds) {
    const profile = profiledOn(task, kind);
    if (profile === undefined || !(profile.ms > 0)) continue;
    const { batch, ms, limitMs = ms } = profile;
    const request = (batch * 1000) / ms;
    if (request < (slowest?.request ?? Infinity)) slowest = { request, limit: (batch * 1000) / Math.min(ms, limitMs) };
  }
  return slowest;
}

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
