// The stage `share` by request and limit (Dilu, section 3.2).
import type { GpuKind } from '@gpuwhisk/common/gpu';
import { overSubscribed } from './oversubscription.js';
import type { Demand, Oversubscription } from './oversubscription.js';
import { stayingSums } from '../../ledger/account.js';
import { profiledOn } from '../../view/shares.js';
import type { Task } from '../../view/view.js';
import { fillingShare } from '../../stages/share/share.js';
import type { ShareOut } from '../../stages/share/share.js';
import { isUnknown } from '../../stages/place/first-share.js';

/** Limit over request of a function without a profile, as Dilu has it for inference (section 3.2). */
const limitOverRequest = 2;

/**
 * Request and limit of a task on a GPU: those of its function's profile there; without one the request is what the function
 * fills, and the limit twice that. Both are within the GPU, and a limit is at least the request. `tries`: the bounds of a place of
 * which a best-effort function without figures asks for half.
 */
export function demandOf(task: Task, gpu: GpuKind, tries?: Oversubscription): Demand {
  const { share } = task;
  if (share !== undefined) return { smRequest: share, smLimit: share };
  const { request, limit } = profiledOn(task, gpu) ?? {};
  if (request === undefined && tries !== undefined && isUnknown(task)) {
    return { smRequest: tries.omega / pairSize, smLimit: Math.min(1, tries.gamma / pairSize) };
  }
  const smRequest = isPart(request) ? Math.min(1, request / 1000) : fillingShare(task);
  const wanted = isPart(request) && isPart(limit) ? limit / 1000 : limitOverRequest * smRequest;
  return { smRequest, smLimit: Math.min(1, Math.max(smRequest, wanted)) };
}

function isPart(thousandth: number | undefined): thousandth is number {
  return thousandth !== undefined && Number.isFinite(thousandth) && thousandth > 0;
}

/** Functions of which nothing is measured that are tried together. */
const pairSize = 2;

/**
 * Request and limit by profile, where the sums of both stay within the bounds. `tries`: a function of which nothing is known leaves
 * half of the place to another one, as pairs are tried.
 */
export function byProfile(bounds: Oversubscription, tries: boolean): ShareOut {
  return (task, { account, kind }) => {
    const demand = demandOf(task, kind, tries ? bounds : undefined);
    return (
      overSubscribed(stayingSums(account.occupants), demand, bounds) ?? {
        share: demand.smLimit,
        request: demand.smRequest,
        lacks: 0,
      }
    );
  };
}
