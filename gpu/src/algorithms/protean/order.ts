// The stage `order` of PROTEAN (paper, section 4.1): requests gathered into batches, strict ones first.
import type { Ledger } from '../../ledger/ledger.js';
import { functionKey } from '../../ledger/occupancy.js';
import type { SliceSlowdowns } from './slowdowns.js';
import { deadlineAt } from '../../view/view.js';
import type { Task } from '../../view/view.js';
import type { Order, Turn } from '../../stages/order/order.js';

/** Settings of the stage; all are ours. */
export const proteanOrderDefaults = {
  /** How long a best-effort request waits for a batch to fill, ms. */
  bestEffortWaitMs: 50,
  /** Part by which a run may take longer than predicted before a batch that waited for its last moment is late. */
  spare: 0.1,
  /** It may take so much longer at least: messages to the invoker and back take their time, too, ms. */
  leastSpareMs: 20,
};

/**
 * Orders batches: those with a strict request (it has an SLO) by their earliest deadline, then best effort by arrival. Requests of
 * one function and caller fill batches in that order, too, so that one strict request makes its batch strict. A batch waits until
 * it is full, or until its first deadline minus start and predicted time (the spare time included); best effort waits for
 * `bestEffortWaitMs`. A batch whose time is not known does not wait. Tasks that are whole batches are taken as they are.
 */
export function proteanOrder(slowdowns: SliceSlowdowns, settings: typeof proteanOrderDefaults): Order {
  const order: Order = (tasks, at, _, ledger) =>
    gathered(tasks).map((batch) => turnOf(batch, { at, ledger, slowdowns, settings }));
  return Object.assign(order, { gathers: true as const });
}

interface Batch {
  first: Task;
  others: Task[];
  /** Requests that it may have. */
  most: number;
}

/** The batches of tasks, strict ones first. */
function gathered(tasks: readonly Task[]): Batch[] {
  const strict = tasks.filter(({ sloMs }) => sloMs !== undefined);
  const bestEffort = strict.length === tasks.length ? [] : tasks.filter(({ sloMs }) => sloMs === undefined);
  strict.sort((one, other) => deadlineAt(one) - deadlineAt(other) || one.arrivedAt - other.arrivedAt);
  bestEffort.sort((one, other) => one.arrivedAt - other.arrivedAt);
  // A batch has the place of its first request, so that the batches are in order as well.
  const batches: Batch[] = [];
  const open = new Map<string, Batch>();
  for (const ordered of [strict, bestEffort]) {
    for (const task of ordered) {
      const most = task.request?.batch ?? 1;
      // A request that agents have refused goes where the others may not.
      if (most === 1 || task.allowed !== undefined) {
        batches.push({ first: task, others: [], most: 1 });
        continue;
      }
      const key = keyOf(task);
      const filling = open.get(key);
      if (filling === undefined) {
        const batch = { first: task, others: [], most };
        batches.push(batch);
        open.set(key, batch);
        continue;
      }
      filling.others.push(task);
      if (filling.others.length + 1 === most) open.delete(key);
    }
  }
  return batches;
}

/** Requests with the same key run together: of one function, version and caller. */
function keyOf({ function: action, namespace, version, request }: Task): string {
  return `${version} ${request?.subject ?? ''} ${functionKey({ action, namespace })}`;
}

interface Moment {
  at: number;
  ledger: Ledger;
  slowdowns: SliceSlowdowns;
  settings: typeof proteanOrderDefaults;
}

function turnOf({ first: task, others, most }: Batch, moment: Moment): Turn {
  const isFull = others.length + 1 >= most;
  const waitsUntil = isFull ? undefined : lastMoment(task, moment);
  const turn: Turn = { task, isOverdue: false };
  if (most > 1) turn.batch = { others, isFull };
  if (waitsUntil !== undefined && waitsUntil > moment.at) turn.waitsUntil = waitsUntil;
  return turn;
}

/** When a batch that is not full has to start; undefined: at once. `task` is its first. */
function lastMoment(task: Task, { ledger, slowdowns, settings }: Moment): number | undefined {
  if (task.sloMs === undefined) return task.arrivedAt + settings.bestEffortWaitMs;
  const expectedMs = slowdowns.expectedMs(task);
  if (expectedMs === undefined) return undefined;
  const spareMs = Math.max(settings.leastSpareMs, expectedMs * settings.spare);
  return deadlineAt(task) - startMsOf(task, ledger) - expectedMs - spareMs;
}

function startMsOf({ startMs = 0, request }: Task, ledger: Ledger): number {
  const isWarm = startMs > 0 && request !== undefined && ledger.withInstances(request, true).size > 0;
  return isWarm ? 0 : startMs;
}
