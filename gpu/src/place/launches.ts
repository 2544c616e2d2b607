import type { Action } from '../view/action.js';
import { functionKey, placeIdsOf } from '../view/occupancy.js';
import type { FunctionState, View } from '../view/view.js';
import { reservationOf } from './bind.js';
import { ledgerOf } from './ledger-of.js';
import { placeLeastLoaded } from './least-loaded.js';
import { requestOfTask } from './request-of.js';

/** More instances of one function. */
export interface WantedInstances {
  of: Pick<FunctionState, 'task'>;
  count: number;
  reason: string;
}

/** Instances that are launched in one second, at most: what is wanted still is launched in the next one. */
const mostLaunches = 16;

/**
 * Places for instances that are wanted ahead of requests: where the least is given away, and only where nothing has to go
 * for them. Each counts on those before it.
 */
export function launches(view: View, wanted: readonly WantedInstances[]): Action[] {
  if (wanted.length === 0) return [];
  const { ledger, isOpen, epoch } = view.ledger ?? ledgerOf(view.gpus);
  const limits = { kept: new Set<string>(), isOpen, isNew: true };
  const held: string[] = [];
  const actions: Action[] = [];
  try {
    for (const { of, count, reason } of wanted) {
      const request = requestOfTask(of.task);
      const { action, namespace } = request;
      for (let more = 0; more < count && actions.length < mostLaunches; more += 1) {
        const choice = placeLeastLoaded(ledger, request, limits, { epoch, at: view.at });
        const { placement } = choice;
        if (placement === undefined || placement.reclaim !== undefined) break;
        const activationId = `launch ${functionKey(request)} ${more}`;
        ledger.hold(reservationOf(activationId, request, choice), Infinity);
        held.push(activationId);
        const share = placement.share.shareClass / 100;
        actions.push({ kind: 'launch', function: action, namespace, gpus: placeIdsOf(placement), share, reason });
      }
    }
  } finally {
    for (const id of held) ledger.release(id);
  }
  return actions;
}
