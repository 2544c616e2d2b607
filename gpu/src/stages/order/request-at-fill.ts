import { requestOfTask, shareAt } from '../../view/requests.js';
import type { PlacementRequest } from '../../ledger/account.js';
import type { Task } from '../../view/view.js';
import { sufficientShare } from '../share/share.js';

/** A task's request, at the share that it fills where its owner has fixed none. */
export function requestAtFill(task: Task): PlacementRequest {
  const request = requestOfTask(task);
  if (task.share !== undefined || task.features === undefined) return request;
  const { shareClass, smRequest, smLimit } = shareAt(sufficientShare(task), 0);
  return { ...request, share: { ...request.share, shareClass, smRequest, smLimit } };
}
