// Dilu's lazy horizontal scaling: instances come and go with load that lasts, and bursts are left to moving shares.
import { countedSeconds } from '../../view/function-log.js';
import type { FunctionState, InstanceState, ServedRates } from '../../view/view.js';
import { checkQuantile, forecastTarget, smoreScaleDefaults } from '../../stages/scale/forecast.js';
import { idleMs } from '../../stages/scale/scale.js';
import type { Scale, ScaledView, Scaling } from '../../stages/scale/scale.js';
import { servedBy } from './served.js';
import { keyOf, stayingInstances } from '../../stages/scale/wanted.js';

/** Settings of `dilu`. */
export const diluScaleDefaults = {
  /** Seconds whose requests are looked at, 2 to 59. */
  windowS: 40,
  /** With so many seconds of more requests than instances serve at their requests, instances are launched. */
  outSamples: 20,
  /** The same for what they serve at their limits, beyond which no share can move. Not in the paper; chosen by bench `dilu`. */
  surgeSamples: 1,
  /** With more than so many seconds of fewer requests than one instance fewer would serve, an instance goes. */
  inSamples: 30,
  /** How long the last instance may idle, s. */
  keepAliveS: 600,
};

/**
 * The part of what instances serve that is to be left after a retirement: rates that come from times of runs vary, so that
 * the same load would call for a launch and for a retirement in turns.
 */
const spare = 0.1;

/** Instances that a function has at least, whatever its requests were. */
type Floor = (of: FunctionState) => number;

/**
 * Lazy scaling (Dilu, section 3.4.2): launches only what requests of half of the window call for, as shares that move up to
 * their limits serve shorter bursts; an instance goes each second while the window calls for fewer, and the last one after
 * it has idled for `keepAliveS`. A function whose time is not known is left to its requests. Throws RangeError for counts
 * that the window lacks, or by which instances would be launched and retired in turns.
 */
export function diluScale(settings: typeof diluScaleDefaults, floorOf: Floor = () => 0): Scale {
  checkWindow(settings);
  const { windowS, keepAliveS } = settings;
  const lazy = (view: ScaledView): Scaling => {
    const { at, functions = [] } = view;
    const left = stayingInstances(view);
    const launch: Scaling['launch'][number][] = [];
    const retire: Scaling['retire'][number][] = [];
    for (const of of functions) {
      const key = keyOf(of.task);
      const there = left.get(key) ?? [];
      left.delete(key);
      const floor = floorOf(of);
      const served = servedBy(of, there);
      const called = served && calledFor(samplesOf(of, windowS, at), served, settings);
      const least = Math.max(floor, called?.least ?? 0);
      const most = Math.max(floor, called?.most ?? Infinity);
      if (least > there.length) {
        const reason = `${least} wanted by its requests of ${windowS} s or its forecast, ${there.length} there`;
        launch.push({ of, count: least - there.length, reason });
      } else if (there.length > Math.max(1, most)) {
        const reason = `${most} would serve its requests of ${windowS} s, ${there.length} there`;
        retire.push({ instance: firstToGo(there, at).id, reason });
      } else if (floor === 0) retire.push(...unused(there, at, keepAliveS));
    }
    for (const there of left.values()) retire.push(...unused(there, at, keepAliveS));
    return { launch, retire };
  };
  return Object.assign(lazy, { isLazy: true } as const);
}

/** Settings of `dilu-smore`. */
export const diluForecastDefaults = { ...diluScaleDefaults, quantile: smoreScaleDefaults.quantile };

/**
 * Both: the forecast of the minute launches ahead, requests of the window launch what it missed, and an instance goes only
 * where neither wants it. Throws RangeError as both do.
 */
export function diluWithForecast({ quantile, ...settings }: typeof diluForecastDefaults): Scale {
  checkQuantile(quantile);
  return diluScale(settings, (of) => forecastTarget(of, quantile));
}

function checkWindow({ windowS, outSamples, surgeSamples, inSamples }: typeof diluScaleDefaults): void {
  const check = (name: string, value: number, least: number, most: number): void => {
    if (Number.isInteger(value) && value >= least && value <= most) return;
    throw new RangeError(`setting '${name}' is ${value} and not a whole number from ${least} to ${most}`);
  };
  check('windowS', windowS, 2, countedSeconds - 1);
  check('outSamples', outSamples, 1, windowS);
  check('surgeSamples', surgeSamples, 1, windowS);
  // With fewer, the same seconds would call for a launch and for a retirement.
  check('inSamples', inSamples, windowS - outSamples, windowS - 1);
}

/** Requests of each second of the window, the fewest first. The second of `at` is not over. */
function samplesOf({ arrivals }: FunctionState, windowS: number, at: number): Uint32Array {
  return arrivals
    .bySecond(at)
    .subarray(-1 - windowS, -1)
    .slice()
    .sort();
}

/** Fewer instances than `least` are too few for the samples, more than `most` too many. */
function calledFor(
  samples: Uint32Array,
  served: ServedRates,
  { outSamples, surgeSamples, inSamples }: typeof diluScaleDefaults,
): { least: number; most: number } {
  // The n-th most requests of a second are more than k instances serve if and only if n seconds have more.
  const most = (nth: number): number => samples[samples.length - nth] ?? 0;
  const leastAt = (part: number): number =>
    Math.max(
      Math.ceil(most(outSamples) / (served.request * part)),
      Math.ceil(most(surgeSamples) / (Math.max(served.limit, served.request) * part)),
    );
  const enough = Math.floor((samples[inSamples] ?? 0) / served.request) + 1;
  return { least: leastAt(1), most: Math.max(leastAt(1 - spare), enough) };
}

/** The instance that is missed least: the one that has idled longest, else one that loads, else one that runs. */
function firstToGo(there: readonly InstanceState[], at: number): InstanceState {
  const rank = { idle: 0, loading: 1, running: 2, draining: 3 };
  return there.reduce((first, one) => {
    const order = rank[one.state] - rank[first.state] || idleMs(first, at) - idleMs(one, at);
    return order < 0 ? one : first;
  });
}

function unused(there: readonly InstanceState[], at: number, keepAliveS: number): Scaling['retire'][number][] {
  return there
    .filter((one) => idleMs(one, at) >= keepAliveS * 1000)
    .map(({ id }) => ({ instance: id, reason: `it has idled for ${keepAliveS} s` }));
}
