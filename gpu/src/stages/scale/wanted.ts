// Launches and retirements that bring functions to the instances that are wanted.
import { groupedBy } from '@gpuwhisk/common/collections';
import { functionKey } from '../../ledger/occupancy.js';
import type { FunctionState, InstanceState } from '../../view/view.js';
import { idleMs } from './scale.js';
import type { ScaledView, Scaling } from './scale.js';

/** Instances that each function of the view is to have. */
export interface Wanted {
  countOf(of: FunctionState, at: number): number;
  /** How long an instance that is not wanted may idle, s. */
  idleS: number;
  /** Reason of a launch after the count: `for its arrivals`. */
  cause: string;
}

/**
 * Launches what is missing. Retires instances beyond the wanted ones that have idled for `idleS`, those that have idled
 * longest first; of a function that is not in the view none are wanted.
 */
export function scaleTo(view: ScaledView, { countOf, idleS, cause }: Wanted): Scaling {
  const { at, functions = [] } = view;
  const staying = stayingInstances(view);
  const wanted = new Map(functions.map((one) => [keyOf(one.task), { of: one, count: countOf(one, at) }]));
  const launch = Array.from(wanted, ([key, { of, count }]) => {
    const there = staying.get(key)?.length ?? 0;
    return { of, count: count - there, reason: `${count} wanted ${cause}, ${there} there` };
  }).filter(({ count }) => count > 0);
  const retire = [...staying].flatMap(([key, there]) => {
    const surplus = there.length - (wanted.get(key)?.count ?? 0);
    const idle = there.filter((one) => idleMs(one, at) >= idleS * 1000);
    const longest = idle.toSorted((one, other) => idleMs(other, at) - idleMs(one, at));
    return longest.slice(0, Math.max(0, surplus)).map(({ id }) => ({
      instance: id,
      reason: `not wanted, and idle for ${idleS} s`,
    }));
  });
  return { launch, retire };
}

/** The key of an instance's or a task's function. */
export function keyOf({ function: action, namespace }: Pick<InstanceState, 'function' | 'namespace'>): string {
  return functionKey({ action, namespace });
}

/** The instances of each function, by its key, that are not to end. */
export function stayingInstances({ instances = [] }: Pick<ScaledView, 'instances'>): Map<string, InstanceState[]> {
  const staying = instances.filter(({ state }) => state !== 'draining');
  return groupedBy(staying, keyOf);
}
