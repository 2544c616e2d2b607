import type { FunctionState } from '../view/view.js';
import type { Scale } from './scale.js';
import { scaleTo } from './wanted.js';

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
  return (view) => scaleTo(view, { countOf: wantedOf, idleS, cause: 'for its arrivals' });
}
