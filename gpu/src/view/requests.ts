// What tasks ask of a place.
import type { Share } from '@gpuwhisk/common/gpu';
import type { PlacementRequest } from '../ledger/account.js';
import { classAtOrAbove } from './shares.js';
import type { Task } from './view.js';

/** The request of a task to a device. */
export function requestOfTask(task: Task): PlacementRequest {
  const { request, namespace, memoryMiB, gpus, isolation = 'shared', maxShare = 1, share = maxShare } = task;
  if (request !== undefined) return request;
  return {
    action: task.function,
    namespace,
    share: shareAt(share, memoryMiB),
    memoryMiB,
    gpus,
    isolation,
    // A task is a whole batch already.
    isBounded: maxShare < 1,
    batch: 1,
  };
}

/** A share of `fraction` of the SMs, asked for whole. */
export function shareAt(fraction: number, memoryMiB: number): Share {
  return { shareClass: classAtOrAbove(fraction), smRequest: fraction, smLimit: fraction, memoryMiB };
}
