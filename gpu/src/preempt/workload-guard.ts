import type { Action } from '../view/decision.js';
import type { GpuState, InstanceState, View, WorkloadState } from '../view/view.js';
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
 * Where a workload is slower than it tolerates, the functions beside it give way: the one with the largest limit is
 * throttled where limits of what runs can be moved, and else stopped, best effort before strict work. One function of a
 * device a second, so that the next report of the workload tells whether that was enough.
 */
export function workloadGuard({ throttleTo, leastShare, graceMs }: typeof workloadGuardDefaults): Preempt {
  const actionsFor = ({ device, id }: WorkloadState, { gpus, instances = [] }: View): Action[] => {
    const gpu = gpus.find((one) => one.id === device);
    const running = gpu && runningOn(gpu, instances);
    const [victim] = running?.toSorted(givesWayFirst) ?? [];
    if (gpu === undefined || victim === undefined) return [];
    const { instance } = victim;
    const { limit } = instance.share;
    if (gpu.movesShares === true && limit > leastShare) {
      const to = Math.max(leastShare, limit * throttleTo);
      const reason = `held back, as workload ${id} is slower than it tolerates`;
      return [{ kind: 'reshare', instance: instance.id, request: to, limit: to, whileBusy: true, reason }];
    }
    const reason = `gives way, as workload ${id} is slower than it tolerates`;
    return [{ kind: 'retire', instance: instance.id, graceMs, reason }];
  };
  return (view, _, event) => {
    // Reading GPUs and instances of the view costs a look at all of the cluster.
    if (event.kind !== 'tick') return [];
    return suffering(view.workloads ?? []).flatMap((one) => actionsFor(one, view));
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

interface Neighbour {
  instance: InstanceState;
  isStrict: boolean;
}

function runningOn(gpu: GpuState, instances: readonly InstanceState[]): Neighbour[] {
  const strict = new Set(gpu.running.filter(({ task }) => task.sloMs !== undefined).map(({ task }) => task.id));
  return instances
    .filter(({ state, gpus }) => state === 'running' && gpus.includes(gpu.id))
    .map((instance) => ({ instance, isStrict: instance.tasks.some((task) => strict.has(task)) }));
}

function givesWayFirst(one: Neighbour, other: Neighbour): number {
  return Number(one.isStrict) - Number(other.isStrict) || other.instance.share.limit - one.instance.share.limit;
}
