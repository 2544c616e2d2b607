import { ofTime } from '../../predict/degradation.js';
import type { Action } from '../../view/decision.js';
import { takesWork } from '../../ledger/used-places.js';
import type { InstanceState, Task, View, WorkloadState } from '../../view/view.js';
import type { Preempt } from './preempt.js';

/** Settings of `workloadGuard`. */
export const workloadGuardDefaults = {
  /** The part of a function's limit that is left to it each time its neighbour suffers, 0 to 1. */
  throttleTo: 0.5,
  /** Limits are not moved below this fraction of the SMs; a function that is there already is stopped. */
  leastShare: 0.1,
  /** How long a run that is stopped may go on, ms. */
  graceMs: 0,
};

/**
 * Where a workload is slower than it tolerates, functions beside it give way: best effort before strict work, the largest
 * limit first, and as many as would bring the workload back within its bound if all had equal parts in its degradation. A
 * function is throttled where limits of what runs can be moved, and else stopped, unless it must not be. Once for each report
 * of the workload: the next one tells whether that was enough.
 */
export function workloadGuard({ throttleTo, leastShare, graceMs }: typeof workloadGuardDefaults): Preempt {
  const actionsOf = ({ instance, mustNotStop }: Neighbour, movesShares: boolean, workload: string): Action[] => {
    const { limit } = instance.share;
    if (movesShares && limit > leastShare) {
      const to = Math.max(leastShare, limit * throttleTo);
      const reason = `held back, as workload ${workload} is slower than it tolerates`;
      return [{ kind: 'reshare', instance: instance.id, request: to, limit: to, whileBusy: true, reason }];
    }
    if (mustNotStop) return [];
    const reason = `gives way, as workload ${workload} is slower than it tolerates`;
    return [{ kind: 'retire', instance: instance.id, graceMs, reason }];
  };
  const actionsFor = (workload: WorkloadState, view: View): Action[] => {
    const { ledger, isOpen } = view.ledger;
    const account = ledger.account(workload.device);
    if (account === undefined || !takesWork(account.health)) return [];
    const { invoker, movesShares = false } = account.place.node;
    if (!isOpen(invoker)) return [];
    const running = runningOn(workload.device, view).toSorted(givesWayFirst);
    const staying = Math.floor(running.length * toleratedPart(workload));
    return running.slice(0, running.length - staying).flatMap((one) => actionsOf(one, movesShares, workload.id));
  };
  /** By workload, the report that functions have given way to. */
  let answered = new Map<string, number>();
  return (view, _, event) => {
    // Reading the instances of the view costs a look at all of the cluster.
    if (event.kind !== 'tick' && event.kind !== 'report') return [];
    const found = suffering(view.workloads ?? []);
    const asking = found.filter(({ id, reportedAt }) => reportedAt === undefined || answered.get(id) !== reportedAt);
    answered = new Map(found.flatMap(({ id, reportedAt }) => (reportedAt === undefined ? [] : [[id, reportedAt]])));
    return asking.flatMap((one) => actionsFor(one, view));
  };
}

/** The first workload of each device that is slower than it tolerates. */
function suffering(workloads: readonly WorkloadState[]): WorkloadState[] {
  const byDevice = new Map<string, WorkloadState>();
  for (const one of workloads) {
    if ((one.measured ?? 0) > one.tolerated && !byDevice.has(one.device)) byDevice.set(one.device, one);
  }
  return [...byDevice.values()];
}

/** The tolerated degradation over the measured one, as times: below 1 for a workload that suffers. */
function toleratedPart({ measured = 0, tolerated }: WorkloadState): number {
  return ofTime(tolerated) / ofTime(measured);
}

interface Neighbour {
  instance: InstanceState;
  isStrict: boolean;
  /** It is a training job without checkpoints. */
  mustNotStop: boolean;
}

function runningOn(place: string, { instances = [], runs }: View): Neighbour[] {
  return instances
    .filter(({ state, gpus }) => state === 'running' && gpus.includes(place))
    .map((instance) => {
      const tasks = instance.tasks.flatMap((id): readonly Task[] | Task => runs(id)?.task ?? []);
      return {
        instance,
        isStrict: tasks.some(({ sloMs }) => sloMs !== undefined),
        mustNotStop: tasks.some(({ mustNotStop }) => mustNotStop === true),
      };
    });
}

function givesWayFirst(one: Neighbour, other: Neighbour): number {
  return Number(one.isStrict) - Number(other.isStrict) || other.instance.share.limit - one.instance.share.limit;
}
