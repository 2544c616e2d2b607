import type { Start } from '../view/decision.js';
import type { Reservation } from '../view/occupancy.js';
import type { PlacementChoice, PlacementRequest } from '../view/placement-request.js';
import type { View } from '../view/view.js';
import { joinBatch } from './least-loaded.js';

/**
 * Starts of tasks that join an instance of their function which runs a batch while the next one gathers: they take nothing of
 * a GPU that the instance does not have. They are held in the ledger of the view.
 */
export function joinBatches({ at, waiting, ledger: open }: View): Start[] {
  if (open === undefined) return [];
  const { ledger, isOpen, epoch } = open;
  return waiting.flatMap(({ id, request, allowed }): Start[] => {
    if (request === undefined || request.batch === 1) return [];
    const limits = { kept: new Set<string>(), isOpen, ...(allowed && { allowed }) };
    const choice = joinBatch(ledger, request, limits, { epoch, at });
    if (choice.placement === undefined) return [];
    ledger.hold(reservationOf(id, request, choice), Infinity);
    return [startOf(id, choice, 'joins a batch')];
  });
}

/** What the ledger holds for a task that was placed. */
export function reservationOf(
  task: string,
  { action, namespace, subject, isolation }: PlacementRequest,
  { placement, reuses }: PlacementChoice,
): Reservation {
  return {
    ...{ activationId: task, action, namespace, isolation, placement: placement!, ended: false },
    ...(subject !== undefined && { subject }),
    ...(reuses !== undefined && { reuses }),
  };
}

/** The start of a task that was placed. */
export function startOf(task: string, choice: PlacementChoice, reason: string): Start {
  const { slice, devices, share } = choice.placement!;
  const [gpu, ...alsoOn] = slice === undefined ? devices : [slice];
  return { ...{ task, gpu: gpu! }, ...(alsoOn.length > 0 && { alsoOn }), share: share.smLimit, reason, choice };
}
