import type { Share } from '@gpuwhisk/common/gpu';
import { classAtOrAbove } from '../view/shares.js';
import type { PlacementRequest } from '../view/placement-request.js';
import type { Task } from '../view/view.js';

/** What a task asks of a device. */
export function requestOfTask(task: Task): PlacementRequest {
  const { request, namespace, memoryMiB, gpus, isolation = 'shared', maxShare = 1, share = maxShare } = task;
  if (request !== undefined) return request;
  return {
    ...{ action: task.function, namespace, share: shareAt(share, memoryMiB), memoryMiB, gpus, isolation },
    // It is a whole batch.
    ...{ isBounded: maxShare < 1, batch: 1 },
  };
}

/** A share of `fraction` of the SMs, asked for whole. */
export function shareAt(fraction: number, memoryMiB: number): Share {
  return { shareClass: classAtOrAbove(fraction), smRequest: fraction, smLimit: fraction, memoryMiB };
}
