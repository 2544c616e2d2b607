import { reservationOf, startOf } from '../place/bind.js';
import { ledgerOf, requestOfTask } from '../place/ledger-of.js';
import { placeLeastLoaded, placesToKeep } from '../place/least-loaded.js';
import type { Start, TaskRejection } from '../view/decision.js';
import { isPlaced } from '../view/account.js';
import type { PlacementChoice, PlacementRequest } from '../view/account.js';
import { dueFirst } from './earliest-deadline.js';
import type { Pass, Planned, Planner } from './plan.js';

/** Places of which the best is looked for; of more, the first one found among those loaded least. */
const mostForBestFit = 1024;

/**
 * Places the earliest deadline first, on the place with the least share given away. It predicts nothing: a share is the one
 * that the task's owner has fixed, else the whole GPU. Starts are held in the view's ledger.
 */
export const leastLoadedPlan: Planner = { plan: planned };

function planned({ view, tasks }: Pass): Planned {
  const { ledger, isOpen, epoch } = view.ledger ?? ledgerOf(view.gpus);
  const stamp = { epoch, at: view.at };
  const fit = ledger.accounts().length > mostForBestFit ? 'first' : 'best';
  const kept = new Set<string>();
  /** Requests that no place could serve: placing others makes no room for them. */
  const unplaceable = new Map<string, readonly TaskRejection[]>();
  const starts: Start[] = [];
  const order: string[] = [];
  const rejected: TaskRejection[] = [];
  for (const { task, isOverdue } of dueFirst(tasks, view.at)) {
    const request = requestOfTask(task);
    const { allowed } = task;
    const asked = keyOf(request, allowed);
    const limits = { kept, isOpen, fit, ...(allowed && { allowed }) } as const;
    const known = unplaceable.get(asked);
    const choice: PlacementChoice =
      known === undefined ? placeLeastLoaded(ledger, request, limits, stamp) : { rejected: [...known] };
    if (isPlaced(choice)) {
      ledger.hold(reservationOf(task.id, request, choice), Infinity);
      starts.push(startOf(task.id, choice, 'least given away there'));
      continue;
    }
    order.push(task.id);
    const reasons = choice.rejected.map((one) => ({ ...one, task: task.id }));
    unplaceable.set(asked, reasons);
    rejected.push(...reasons);
    if (isOverdue) for (const place of placesToKeep(ledger, request, limits)) kept.add(place);
  }
  return { starts, order, rejected };
}

/** The same for requests that are served by the same places. */
function keyOf(request: PlacementRequest, allowed: ReadonlySet<string> | undefined): string {
  return JSON.stringify([request, allowed && [...allowed]]);
}
