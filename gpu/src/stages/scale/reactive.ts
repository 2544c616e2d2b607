import type { FunctionState } from '../../view/view.js';
import type { Scale } from './scale.js';
import { scaleTo } from './wanted.js';

/** Settings of `reactive`. */
export const reactiveDefaults = {
  /** Arrivals are averaged over so many seconds, 1 to 60. */
  windowS: 10,
  /** Part of its time that an instance is to be busy. */
  busy: 0.7,
  /** How long an instance that is not wanted may idle, s; with 0 one that runs goes, too, after its run. */
  idleS: 60,
  /** Instances that a function keeps whose requests have stopped. */
  least: 0,
};

/**
 * As many instances as the arrivals of the last seconds keep busy (Little's law: arrivals per second × time of a run as
 * served, or over what an instance was profiled to serve), and the reserve that `busy` leaves. A function whose time is not
 * known gets one while requests come.
 */
export function reactive({ idleS, ...settings }: typeof reactiveDefaults): Scale {
  const countOf = countByArrivals(settings);
  return (view) => scaleTo(view, { countOf, idleS, cause: 'for its arrivals' });
}

/** The instances that `reactive` wants of a function. */
export function countByArrivals({
  windowS,
  busy,
  least,
}: Omit<typeof reactiveDefaults, 'idleS'>): (of: FunctionState, at: number) => number {
  return ({ task, arrivals, served, runMs = task.soloMs ?? 0 }, at) => {
    const counts = arrivals.bySecond(at);
    // The second of `at` is not over.
    const window = counts.subarray(Math.max(0, counts.length - 1 - windowS), counts.length - 1);
    const perSecond = window.reduce((sum, one) => sum + one, 0) / Math.max(1, window.length);
    if (perSecond === 0) return least;
    const busyInstances = served === undefined ? (perSecond * runMs) / 1000 / task.batch : perSecond / served.limit;
    return Math.max(1, least, Math.ceil(busyInstances / busy));
  };
}
