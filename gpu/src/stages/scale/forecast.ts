// Instances for forecast requests, and for idle times as histograms have them.
import { hhpPrewarm, lsthPrewarm, type Prewarmer } from '../../forecast/prewarm-rules.js';
import { instanceTarget } from '../../forecast/prewarm-target.js';
import type { FunctionState } from '../../view/view.js';
import type { Scale } from './scale.js';
import { scaleTo } from './wanted.js';

/** Settings of `smore`. */
export const smoreScaleDefaults = {
  /** The instances suffice with this probability: the knob between cold starts and waste. */
  quantile: 0.99,
  /** How long an instance that the forecast does not want may idle, s. */
  coolDownS: 120,
};

/**
 * As many instances as the forecast of the minute wants (SMORE, section VI-B; thesis, section 3.4.2). A function
 * without a forecast gets none ahead of its requests. Throws RangeError for a quantile outside 0 to 1 exclusive.
 */
export function smoreScale({ quantile, coolDownS }: typeof smoreScaleDefaults): Scale {
  checkQuantile(quantile);
  const countOf = (one: FunctionState): number => forecastTarget(one, quantile);
  return (view) => scaleTo(view, { countOf, idleS: coolDownS, cause: 'for its forecast' });
}

/** Instances that the forecast of the minute wants, which suffice with the probability `quantile`; 0 without a forecast. */
export function forecastTarget(
  { forecast, task, runMs = task.soloMs ?? 0 }: Pick<FunctionState, 'forecast' | 'task' | 'runMs'>,
  quantile: number,
): number {
  return forecast === undefined ? 0 : instanceTarget(forecast, runMs / 1000 / task.batch, quantile);
}

/** Throws RangeError for a quantile outside 0 to 1 exclusive. */
export function checkQuantile(quantile: number): void {
  if (!(quantile > 0 && quantile < 1)) throw new RangeError(`setting 'quantile' is ${quantile} and not within 0 to 1`);
}

/** Settings of `hhp` and `lsth`. */
export const histogramScaleDefaults = {
  /** How long an instance outside the windows may idle, s: arrivals are known by minute. */
  idleS: 60,
};

const minuteMs = 60_000;

/** One instance while the hybrid histogram policy keeps the function loaded, by its arrivals of the last day. */
export const hhpScale = (settings: typeof histogramScaleDefaults): Scale => byRule(() => hhpPrewarm(), settings);

/** The same by INFless's long-short-term histogram. */
export const lsthScale = (settings: typeof histogramScaleDefaults): Scale => byRule(() => lsthPrewarm(), settings);

function byRule(newRule: () => Prewarmer, { idleS }: typeof histogramScaleDefaults): Scale {
  // A rule reads a day of counts: once a minute for each function.
  const targets = new WeakMap<FunctionState['arrivals'], { minute: number; target: number }>();
  const countOf = ({ arrivals }: FunctionState, at: number): number => {
    const minute = Math.floor(at / minuteMs);
    const known = targets.get(arrivals);
    if (known?.minute === minute) return known.target;
    const rule = newRule();
    // The minute of `at` is not over.
    const over = arrivals.byMinute(at).subarray(0, -1);
    const first = over.findIndex((count) => count > 0);
    if (first >= 0) {
      for (let index = first; index < over.length; index += 1) {
        rule.add(minute - over.length + index, over[index] ?? 0);
      }
    }
    const target = first < 0 ? 0 : rule.target();
    targets.set(arrivals, { minute, target });
    return target;
  };
  return (view) => scaleTo(view, { countOf, idleS, cause: 'by its idle times' });
}
