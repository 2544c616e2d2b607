import { functionKey } from '../view/occupancy.js';
import type { FunctionState, InstanceState, View } from '../view/view.js';
import { idleMs } from './scale.js';
import type { Scale } from './scale.js';

/** Settings of `reactive`. */
export const reactiveDefaults = {
  /** Arrivals are averaged over so many seconds, 1 to 60. */
  windowS: 10,
  /** Part of its time that an instance is to be busy. */
  busy: 0.7,
  /** How long an instance that is not wanted may idle, s. */
  idleS: 60,
};

/**
 * As many instances as the arrivals of the last seconds keep busy (Little's law: arrivals per second × time of a run as
 * served), and the reserve that `busy` leaves. A function whose time is not known gets one while requests come.
 */
export function reactive({ windowS, busy, idleS }: typeof reactiveDefaults): Scale {
  const wantedOf = ({ task, arrivals, runMs = task.soloMs ?? 0 }: FunctionState, at: number): number => {
    const counts = arrivals.bySecond(at);
    // The second of `at` is not over.
    const window = counts.subarray(Math.max(0, counts.length - 1 - windowS), counts.length - 1);
    const perSecond = window.reduce((sum, one) => sum + one, 0) / Math.max(1, window.length);
    if (perSecond === 0) return 0;
    return Math.max(1, Math.ceil((perSecond * runMs) / 1000 / task.batch / busy));
  };
  return (view) => {
    const { at, functions = [] } = view;
    const staying = stayingByFunction(view);
    const wanted = new Map(functions.map((one) => [keyOf(one.task), { of: one, count: wantedOf(one, at) }]));
    const launch = Array.from(wanted, ([key, { of, count }]) => {
      const there = staying.get(key)?.length ?? 0;
      return { of, count: count - there, reason: `${count} wanted for its arrivals, ${there} there` };
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
  };
}

function keyOf({ function: action, namespace }: Pick<InstanceState, 'function' | 'namespace'>): string {
  return functionKey({ action, namespace });
}

/** The instances of each function that are not to end. */
function stayingByFunction({ instances = [] }: View): Map<string, InstanceState[]> {
  const byFunction = new Map<string, InstanceState[]>();
  for (const one of instances) {
    if (one.state === 'draining') continue;
    const known = byFunction.get(keyOf(one));
    if (known === undefined) byFunction.set(keyOf(one), [one]);
    else known.push(one);
  }
  return byFunction;
}
