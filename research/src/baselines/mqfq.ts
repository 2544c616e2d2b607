// Multi-queue fair queueing of functions on GPUs.
import { placedByScore } from '@gpuwhisk/gpu/stages/order/scored-places';
import { reservationOf, startOf } from '@gpuwhisk/gpu/stages/place/bind';
import { fewestTasks } from '@gpuwhisk/gpu/stages/place/place';
import { unlimited } from '@gpuwhisk/gpu/stages/share/share';
import { isPlaced } from '@gpuwhisk/gpu/ledger/account';
import type { PlacementChoice } from '@gpuwhisk/gpu/ledger/account';
import type { Ledger } from '@gpuwhisk/gpu/ledger/ledger';
import { functionKeyOf } from '@gpuwhisk/gpu/ledger/occupancy';
import type { Pass, Planned, Planner } from '@gpuwhisk/gpu/stages/order/plan';
import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';
import type { ObservedRun, Start, TaskRejection } from '@gpuwhisk/gpu/view/decision';
import { requestOfTask } from '@gpuwhisk/gpu/view/requests';
import type { Task } from '@gpuwhisk/gpu/view/view';

/** Settings of `mqfq-sticky`. */
export const mqfqDefaults = {
  /** D: tasks that run on a GPU at once (Ilúvatar's configuration `concurrent_running_funcs`). */
  slots: 2,
  /** T: service by which a function may be ahead of the one that is furthest behind, ms (Ilúvatar's default). */
  overrunMs: 10_000,
};

/**
 * MQFQ-Sticky, the GPU queue of Ilúvatar (Fuerst and others, arXiv 2507.08954, after Hedayati and others, ATC 2019): a queue and
 * a virtual time for each function. A started task advances that by the mean time of the function's runs. A function that is
 * more than T ahead of the least virtual time of those with waiting tasks is throttled. The function that was served last goes
 * on until it is throttled or has nothing to do; then one with an instance that idles follows, then the one furthest behind.
 *
 * Simplified: one queue for the cluster and not one for each server, D is fixed and not raised by utilisation, and memory of idle
 * functions is left to the platform, so that the grace period of empty queues has no part. A function whose tasks find no memory
 * does not hold throttled ones back.
 */
export const mqfqSticky: PolicyRecord = {
  summary: 'functions in fair turns by their time on GPUs, the one that is loaded first, at most two tasks on a GPU',
  admit: 'before-slo',
  plan: 'mqfq-sticky',
};

/** Functions that are remembered, at most, besides those with waiting tasks. */
const mostFlows = 10_000;
/** Weight of the newest run in the mean time of a function. */
const weight = 0.1;

/** A function's queue. */
interface Flow {
  /** Service that it has had, ms of the common virtual time. */
  virtualMs: number;
  /** Mean time of its runs; absent: none has ended. */
  meanMs?: number;
}

/** A flow with its tasks of a pass, the first one first. */
interface Waiting {
  key: string;
  flow: Flow;
  tasks: Task[];
  /** None of its tasks found a place in this pass. */
  isStuck: boolean;
}

interface SavedFlows {
  flows: [string, Flow][];
  backlog: string[];
  virtualMs: number;
  last?: string;
}

/** The planner of `mqfq-sticky`. A start costs O(functions that wait + places). */
export function mqfqPlan({ slots, overrunMs }: typeof mqfqDefaults): Planner {
  const placing = placedByScore(unlimited(slots), fewestTasks, 'fewest-tasks');
  const flows = new Map<string, Flow>();
  /** Functions that had waiting tasks after the last pass. */
  let backlog: ReadonlySet<string> = new Set();
  /** The greatest of the least virtual times of functions with waiting tasks: where a function begins that had none. */
  let virtualMs = 0;
  /** The function that was served last. */
  let last: string | undefined;

  function plan({ view, tasks }: Pass): Planned {
    const { ledger, isOpen, epoch } = view.ledger;
    const queues = queuesOf(tasks);
    const starts: Start[] = [];
    const rejected: TaskRejection[] = [];
    const placeIn = placing.begin(
      view,
      tasks.map((task) => ({ task })),
    );
    const place = (task: Task): PlacementChoice => {
      const { allowed } = task;
      const limits = { kept: new Set<string>(), isOpen, ...(allowed && { allowed }) };
      return placeIn(requestOfTask(task), limits, { epoch, at: view.at }, task);
    };
    /** Starts the first task of a queue that has a place; whether there was one. */
    const startOne = ({ key, flow, tasks: queue }: Waiting): boolean => {
      const tried = new Map<string, PlacementChoice>();
      for (const [at, task] of queue.entries()) {
        const asked = shapeOf(task);
        const choice = tried.get(asked) ?? place(task);
        tried.set(asked, choice);
        if (!isPlaced(choice)) continue;
        ledger.hold(reservationOf(task.id, requestOfTask(task), choice), Infinity);
        starts.push(startOf(task.id, choice, 'the turn of its function'));
        queue.splice(at, 1);
        flow.virtualMs += costOf(task, flow);
        last = key;
        return true;
      }
      for (const task of queue) {
        const { rejected: reasons } = tried.get(shapeOf(task)) ?? { rejected: [] };
        for (const reason of reasons) rejected.push({ ...reason, task: task.id });
      }
      return false;
    };
    const free = freeSlots(ledger);
    while (starts.length < free) {
      const next = nextOf(queues, ledger);
      if (next === undefined) break;
      next.isStuck = !startOne(next);
    }
    forget(queues);
    return { starts, order: leftOver(queues), rejected: [...rejected, ...untried(queues, ledger)] };
  }

  /** The queues of the tasks. A function that had nothing to do gets no credit for the time (MQFQ's start tag). */
  function queuesOf(tasks: readonly Task[]): Waiting[] {
    const queues = new Map<string, Waiting>();
    const sorted = [...tasks].sort((one, other) => one.arrivedAt - other.arrivedAt);
    for (const task of sorted) {
      const key = functionKeyOf(task);
      const queue = queues.get(key);
      if (queue !== undefined) {
        queue.tasks.push(task);
        continue;
      }
      let flow = flows.get(key);
      if (flow === undefined) flows.set(key, (flow = { virtualMs }));
      queues.set(key, { key, flow, tasks: [task], isStuck: false });
    }
    const all = [...queues.values()];
    for (const { key, flow } of all) if (!backlog.has(key)) flow.virtualMs = Math.max(flow.virtualMs, virtualMs);
    return all;
  }

  /** The queue to serve: of those within T of the one furthest behind. */
  function nextOf(queues: readonly Waiting[], ledger: Ledger): Waiting | undefined {
    const open = queues.filter(({ tasks, isStuck }) => tasks.length > 0 && !isStuck);
    if (open.length === 0) return undefined;
    const leastMs = open.reduce((least, { flow }) => Math.min(least, flow.virtualMs), Infinity);
    virtualMs = Math.max(virtualMs, leastMs);
    const active = open.filter(({ flow }) => flow.virtualMs - leastMs <= overrunMs);
    const sticky = active.find(({ key }) => key === last);
    if (sticky !== undefined) return sticky;
    const isWarm = ({ tasks: [task] }: Waiting): boolean =>
      task !== undefined && ledger.withInstances(requestOfTask(task), true).size > 0;
    return furthestBehind(active.filter(isWarm)) ?? furthestBehind(active);
  }

  function freeSlots(ledger: Ledger): number {
    return ledger.accounts().reduce((sum, { busy }) => sum + Math.max(0, slots - busy), 0);
  }

  /** Why queues were not tried that no GPU has a slot for, or that are throttled. */
  function untried(queues: readonly Waiting[], ledger: Ledger): TaskRejection[] {
    const what = ledger.accounts()[0]?.id ?? '';
    return queues.flatMap(({ flow, tasks, isStuck }) => {
      if (isStuck) return [];
      const numbers = { aheadMs: Math.round(flow.virtualMs - virtualMs), overrunMs, slots };
      return tasks.map(({ id: task }) => ({ task, what, reason: 'no GPU has a slot for its function', numbers }));
    });
  }

  /** The tasks that wait: of the function furthest behind first. */
  function leftOver(queues: readonly Waiting[]): string[] {
    const byTurn = queues.toSorted((one, other) => one.flow.virtualMs - other.flow.virtualMs);
    return byTurn.flatMap(({ tasks }) => tasks.map(({ id }) => id));
  }

  function forget(queues: readonly Waiting[]): void {
    backlog = new Set(queues.flatMap(({ key, tasks }) => (tasks.length > 0 ? [key] : [])));
    for (const key of flows.keys()) {
      if (flows.size <= mostFlows) return;
      if (!backlog.has(key)) flows.delete(key);
    }
  }

  function costOf({ soloMs, gpus }: Task, { meanMs }: Flow): number {
    // A function that has never run is charged a tenth of T, as by Ilúvatar.
    const ms = meanMs ?? (soloMs !== undefined && soloMs > 0 ? soloMs : overrunMs / 10);
    return ms * gpus;
  }

  return {
    plan,
    observe({ task, ranMs }: ObservedRun) {
      const flow = flows.get(functionKeyOf(task));
      if (flow === undefined || !(ranMs >= 0)) return;
      flow.meanMs = flow.meanMs === undefined ? ranMs : flow.meanMs + weight * (ranMs - flow.meanMs);
    },
    saved: (): SavedFlows => ({
      flows: Array.from(flows, ([key, flow]) => [key, { ...flow }]),
      backlog: [...backlog],
      virtualMs,
      ...(last !== undefined && { last }),
    }),
    restore(saved) {
      const state = saved as SavedFlows;
      flows.clear();
      for (const [key, flow] of state.flows) flows.set(key, { ...flow });
      backlog = new Set(state.backlog);
      ({ virtualMs, last } = state);
    },
  };
}

function furthestBehind(queues: readonly Waiting[]): Waiting | undefined {
  return queues.reduce<Waiting | undefined>(
    (least, one) => (least === undefined || one.flow.virtualMs < least.flow.virtualMs ? one : least),
    undefined,
  );
}

/** Tasks of one function with the same shape fit on the same places. */
function shapeOf({ version, memoryMiB, gpus, share, maxShare, allowed }: Task): string {
  return JSON.stringify([version, memoryMiB, gpus, share, maxShare, allowed && [...allowed]]);
}
