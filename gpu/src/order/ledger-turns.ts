// Tasks one after the other, each placed in the ledger by a rule.
import { reservationOf, startOf } from '../place/bind.js';
import type { PlacementLimits } from '../place/candidate.js';
import type { Refusal } from '../place/fact-filters.js';
import { emptyGpuAccountOf } from '../place/gpu-account.js';
import { ledgerOf, requestOfTask } from '../place/ledger-of.js';
import { placesToKeep } from '../place/least-loaded.js';
import type { LedgerPlace, Placing } from '../place/place.js';
import { isRefusal } from '../share/share.js';
import type { ShareOut } from '../share/share.js';
import { isPlaced } from '../view/account.js';
import type { PlacementChoice, PlacementRequest } from '../view/account.js';
import type { Start, TaskRejection } from '../view/decision.js';
import type { Ledger } from '../view/ledger.js';
import { gpuTypeOf } from '../view/places.js';
import { classAtOrAbove } from '../view/shares.js';
import type { Task, View } from '../view/view.js';
import type { Order } from './order.js';
import type { Planned, Planner } from './plan.js';

/**
 * Places the tasks of `turns` one after the other and holds what it finds in the ledger of the view. A task that fits nowhere
 * waits, and may be overtaken until it is overdue. `reason` is that of the starts.
 */
export function placedInTurns(view: View, turns: ReturnType<Order>, placing: Placing, reason: string): Planned {
  const { ledger, isOpen, epoch } = view.ledger ?? ledgerOf(view.gpus);
  const stamp = { epoch, at: view.at };
  const kept = new Set<string>();
  /** Requests that no place could serve: placing others makes no room for them. */
  const unplaceable = new Map<string, readonly TaskRejection[]>();
  const starts: Start[] = [];
  const order: string[] = [];
  const rejected: TaskRejection[] = [];
  for (const { task, isOverdue } of turns) {
    const request = placing.requestOf(task, ledger, view.at);
    if ('reason' in request) {
      order.push(task.id);
      rejected.push({ task: task.id, what: firstOf(ledger), ...request });
      continue;
    }
    const { allowed } = task;
    const asked = keyOf(request, allowed);
    const limits: PlacementLimits = { kept, isOpen, ...(allowed && { allowed }) };
    const known = unplaceable.get(asked);
    const choice: PlacementChoice =
      known === undefined ? placing.placeIn(ledger, request, limits, stamp) : { rejected: [...known] };
    if (isPlaced(choice)) {
      ledger.hold(reservationOf(task.id, request, choice), Infinity);
      starts.push(startOf(task.id, choice, reason));
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

function firstOf(ledger: Ledger): string {
  return ledger.accounts()[0]?.id ?? '';
}

/** Stages of a policy whose place stage chooses in the ledger. */
interface LedgerStages {
  order: Order;
  share: ShareOut;
  place: LedgerPlace;
  /** The name of `place`, for reasons. */
  placeName: string;
}

/** A planner of such stages. */
export function turnsInLedger({ order, share, place, placeName }: LedgerStages): Planner {
  const placing = placingOf(share, place);
  return {
    plan: ({ view, tasks }) =>
      placedInTurns(view, order(tasks, view.at, view.workloads), placing, `the first by '${placeName}'`),
    observe: (run) => order.observe?.(run),
    saved: () => order.saved?.(),
    restore: (saved) => order.restore?.(saved),
  };
}

/**
 * Places by `place` at the shares of `share`. Since places are chosen by what a task asks for, the share is what the task gets
 * of an empty place, one like the first of the ledger; `place` bounds the sums. A share that the owner has fixed stays.
 */
export function placingOf(share: ShareOut, { placeIn }: LedgerPlace): Placing {
  return {
    placeIn,
    requestOf(task, ledger, at) {
      const request = requestOfTask(task);
      if (task.share !== undefined) return request;
      const given = onEmptyPlace(share, task, ledger, at);
      if (given === undefined) return request;
      if (isRefusal(given)) return given;
      const smLimit = Math.min(given.share, task.maxShare ?? 1);
      const smRequest = Math.min(given.request ?? smLimit, smLimit);
      return { ...request, share: { ...request.share, shareClass: classAtOrAbove(smLimit), smRequest, smLimit } };
    },
  };
}

function onEmptyPlace(
  share: ShareOut,
  task: Task,
  ledger: Ledger,
  at: number,
): ReturnType<ShareOut> | Refusal | undefined {
  const [first] = ledger.accounts();
  if (first === undefined) return undefined;
  const { id, capacityMiB, mode, place } = first;
  const { node, device, slice } = place;
  const type = gpuTypeOf(device, slice);
  const gpu = { id, node: node.invoker, type, mode, memoryMiB: capacityMiB, running: [] };
  return share(task, { ...emptyGpuAccountOf(gpu), residents: [] }, at);
}
