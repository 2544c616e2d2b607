// The stage `share` by request and limit (Dilu, section 3.2).
import type { GpuKind } from '@gpuwhisk/common/gpu';
import { overSubscribed } from './oversubscription.js';
import type { Demand, Oversubscription } from './oversubscription.js';
import { stayingSums } from '../../ledger/account.js';
import { profiledOn } from '../../view/shares.js';
import type { Task } from '../../view/view.js';
import { fillingShare } from '../../stages/share/share.js';
import type { ShareOut } from '../../stages/share/share.js';

/** Limit over request of a function without a profile, as Dilu has it for inference (section 3.2). */
const limitOverRequest = 2;

/**
 * Request and limit of a task on a GPU: those of its function's profile there; without one the request is what the function
 * fills, and the limit twice that. Both are within the GPU, and a limit is at least the request.
 */
export function demandOf(task: Task, gpu: GpuKind): Demand {
  const { share } = task;
  if (share !== undefined) return { smRequest: share, smLimit: share };
  const { request, limit } = profiledOn(task, gpu) ?? {};
  const smRequest = isPart(request) ? Math.min(1, request / 1000) : fillingShare(task);
  const wanted = isPart(request) && isPart(limit) ? limit / 1000 : limitOverRequest * smRequest;
  return { smRequest, smLimit: Math.min(1, Math.max(smRequest, wanted)) };
}

function isPart(thousandth: number | undefined): thousandth is number {
  return thousandth !== undefined && Number.isFinite(thousandth) && thousandth > 0;
}

/** Request and limit by profile, where the sums of both stay within the bounds. */
export function byProfile(bounds: Oversubscription): ShareOut {
  return (task, { account, kind }) => {
    const demand = demandOf(task, kind);
    return (
      overSubscribed(stayingSums(account.occupants), demand, bounds) ?? {
        share: demand.smLimit,
        request: demand.smRequest,
        lacks: 0,
      }
    );
  };
}
