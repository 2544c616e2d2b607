// Tasks one after the other, each placed in the ledger by a rule.
import { reservationOf, startOf } from '../place/bind.js';
import type { PlacementLimits } from '../place/candidate.js';
import type { FirstShare } from '../place/first-share.js';
import { predictedFilters } from '../place/predicted-filters.js';
import type { Refusal } from '../place/fact-filters.js';
import { joinBatch, placesToKeep } from '../place/least-loaded.js';
import type { LedgerPlace, Placing } from '../place/place.js';
import { isRefusal } from '../share/share.js';
import type { ShareOut } from '../share/share.js';
import { emptyAccount, isPlaced } from '../../ledger/account.js';
import type { PlacedChoice, PlacementChoice, PlacementRequest } from '../../ledger/account.js';
import type { Start, TaskRejection } from '../../view/decision.js';
import type { Ledger } from '../../ledger/ledger.js';
import { kindOf } from '../../ledger/places.js';
import { requestOfTask } from '../../view/requests.js';
import { classAtOrAbove } from '../../view/shares.js';
import type { Task, View } from '../../view/view.js';
import type { Order, Turn } from './order.js';
import type { Planned, Planner } from './plan.js';

/**
 * Places the tasks of `turns` one after the other and holds what it finds in the ledger of the view. A task that fits nowhere
 * waits, and may be overtaken until it is overdue. The requests of a batch run in one instance. `reason` is that of the starts.
 */
export function placedInTurns(
  view: View,
  turns: readonly Turn[],
  { placing, reason, rule }: { placing: Placing; reason: string; rule?: FirstShare | undefined },
): Planned {
  const { ledger, isOpen, epoch } = view.ledger;
  const filters = predictedFilters(
    rule,
    view,
    turns.map(({ task }) => task),
  );
  const placeIn = placing.begin(view, turns);
  const stamp = { epoch, at: view.at };
  const kept = new Set<string>();
  /** Requests that no place could serve: placing others makes no room for them. */
  const unplaceable = new Map<string, readonly TaskRejection[]>();
  const starts: Start[] = [];
  const order: string[] = [];
  const rejected: TaskRejection[] = [];
  let wakeAt = Infinity;
  const start = (task: Task, request: PlacementRequest, choice: PlacedChoice, because: string): void => {
    ledger.hold(reservationOf(task.id, request, choice), Infinity);
    starts.push(startOf(task.id, choice, because));
  };
  for (const { task, isOverdue, batch, waitsUntil } of turns) {
    const { others } = batch ?? alone;
    const wait = (reasons: readonly Refused[]): void => {
      order.push(task.id);
      for (const { id } of others) order.push(id);
      for (const one of reasons) rejected.push({ ...one, task: task.id });
    };
    if (waitsUntil !== undefined) {
      wakeAt = Math.min(wakeAt, waitsUntil);
      wait([{ what: firstOf(ledger), ...beingFilled(others.length + 1, waitsUntil - view.at) }]);
      continue;
    }
    const request = placing.requestOf(task, ledger, view.at);
    if ('reason' in request) {
      wait([{ what: firstOf(ledger), ...request }]);
      continue;
    }
    const { allowed } = task;
    const asked = placing.judgesTasks ? undefined : keyOf(request, task);
    const predicted = filters(task, request.share.smLimit);
    const limits: PlacementLimits = { kept, isOpen, predicted, ...(allowed && { allowed }) };
    const known = asked === undefined ? undefined : unplaceable.get(asked);
    const place = (): PlacementChoice => placeIn(request, limits, stamp, task);
    const join = (): PlacementChoice => joinBatch(ledger, request, limits, stamp);
    const choice: PlacementChoice =
      known !== undefined
        ? { rejected: [...known] }
        : batch === undefined
          ? place()
          : forBatch(place, join, batch.isFull || ledger.withInstances(request, true).size > 0);
    if (isPlaced(choice)) {
      const joins = choice.placement.joins === true;
      if (others.length > 0 && !joins) choice.placement.together = { of: task.id, requests: others.length + 1 };
      start(task, request, choice, joins ? 'joins a batch' : reason);
      for (const other of others) {
        const own = joins ? join() : inBatchOf(task.id, choice);
        if (isPlaced(own)) start(other, request, own, joins ? 'joins a batch' : 'in the batch of the one before');
        else order.push(other.id);
      }
      continue;
    }
    const reasons = choice.rejected.map((one) => ({ ...one, task: task.id }));
    if (asked !== undefined) unplaceable.set(asked, reasons);
    wait(reasons);
    if (isOverdue) for (const one of placesToKeep(ledger, request, limits)) kept.add(one);
  }
  return { starts, order, rejected, ...(wakeAt < Infinity && { wakeAt }) };
}

type Refused = Omit<TaskRejection, 'task'>;

const alone = { others: [] as readonly Task[] };

/**
 * The choice for a batch. `placesFirst`: an instance that idles, or a new one, comes before one that runs a batch and gathers its
 * next one.
 */
function forBatch(place: () => PlacementChoice, join: () => PlacementChoice, placesFirst: boolean): PlacementChoice {
  const first = placesFirst ? place() : join();
  if (isPlaced(first)) return first;
  const second = placesFirst ? join() : place();
  return isPlaced(second) || !placesFirst ? second : first;
}

/** The choice of a request that runs with `first`, which was placed by `choice`. */
function inBatchOf(first: string, { placement, reuses }: PlacedChoice): PlacedChoice {
  const own = { ...placement, joins: true };
  delete own.reclaim;
  return { placement: own, reuses: reuses ?? first, rejected: [] };
}

function beingFilled(requests: number, leftMs: number): Refusal {
  return { reason: 'its batch is being filled', numbers: { requests, leftMs: Math.ceil(leftMs) } };
}

/** The same for tasks that the same places serve: some are only for strict ones. */
function keyOf(request: PlacementRequest, { allowed, sloMs }: Task): string {
  return JSON.stringify([request, sloMs !== undefined, allowed && [...allowed]]);
}

function firstOf(ledger: Ledger): string {
  return ledger.accounts()[0]?.id ?? '';
}

/** Stages that decide one after the other. */
interface TurnStages {
  order: Order;
  placing: Placing;
  /** The name of the stage that places, for reasons. */
  placeName: string;
  /** Of the predicted filters; undefined: the policy asks none. */
  rule?: FirstShare | undefined;
}

/** State of such stages, where that of the places is kept. */
interface SavedTurns {
  order?: unknown;
  place?: unknown;
}

/** A planner of such stages. */
export function turnsInLedger({ order, placing, placeName, rule }: TurnStages): Planner {
  const keepsPlaces = placing.saved !== undefined;
  return {
    plan({ view, tasks }) {
      const turns = order(tasks, view.at, view.workloads, view.ledger.ledger);
      return placedInTurns(view, turns, { placing, reason: `the first by '${placeName}'`, rule });
    },
    ...(order.gathers && { gathers: true }),
    observe: (run) => order.observe?.(run),
    saved: () => (keepsPlaces ? { order: order.saved?.(), place: placing.saved?.() } : order.saved?.()),
    restore(saved) {
      const { order: own, place } = (keepsPlaces ? saved : { order: saved }) as SavedTurns;
      if (own !== undefined) order.restore?.(own);
      if (place !== undefined) placing.restore?.(place);
    },
  };
}

/**
 * Places by `place` at the shares of `share`. Since places are chosen by what a task asks for, the share is what the task gets
 * of an empty place, one like the first of the ledger; `place` bounds the sums. A share that the owner has fixed stays.
 */
export function placingOf(share: ShareOut, place: LedgerPlace): Placing {
  return {
    begin: (pass, turns) => place.begin(pass, turns),
    ...(place.saved !== undefined && { saved: () => place.saved?.() }),
    restore: (saved) => place.restore?.(saved),
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

function onEmptyPlace(share: ShareOut, task: Task, ledger: Ledger, at: number): ReturnType<ShareOut> | undefined {
  const [first] = ledger.accounts();
  if (first === undefined) return undefined;
  const { place } = first;
  return share(task, { account: emptyAccount(place), kind: kindOf(place), residents: [] }, at);
}
