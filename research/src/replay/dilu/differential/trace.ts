// One trace of requests of a function, and what both engines say about each request and each instance.
import type { Random } from '@gpuwhisk/common/system/random';
import { gamma } from '../../protean/arrivals.js';
import { latencyAt, type LatencySurface } from '../../model/latency-surface.js';

/** A function as it was profiled. */
export interface TracedFunction {
  surface: LatencySurface;
  sloMs: number;
  /** Requests that run together, at most. */
  batch: number;
  /** Fractions of the SMs: at a decision's least, and where nothing contends for them. */
  request: number;
  limit: number;
}

/** Arrivals in ms from 0, rising; the load lasts for `lengthS`. */
export interface Trace {
  arrivals: Float64Array;
  lengthS: number;
  /** Time of a start until it serves, ms. */
  coldMs: number;
}

/** When a request ran. Times in ms of the trace. */
export interface ServedRequest {
  startedAt: number;
  endedAt: number;
}

/** What an engine has made of a trace. Times in ms of the trace, rising. */
export interface Played {
  /** In the order of arrivals. */
  requests: readonly ServedRequest[];
  launches: readonly number[];
  retirements: readonly number[];
  /** Part of the requests that ended later than the SLO. */
  svr: number;
}

/** Arrivals at gamma-distributed distances with the coefficient of variation `cv` (Dilu, section 5.2), in whole microseconds. */
export function gammaArrivals(perS: number, cv: number, lengthS: number, random: Random): Float64Array {
  const shape = 1 / (cv * cv);
  const scaleMs = 1000 / (perS * shape);
  const arrivals: number[] = [];
  for (let at = gamma(shape, random) * scaleMs; at < lengthS * 1000; at += gamma(shape, random) * scaleMs) {
    arrivals.push(Math.round(at * 1000) / 1000);
  }
  return Float64Array.from(arrivals);
}

/** Requests per second in full batches, one batch after the other. */
export function ratePerS({ surface, batch }: TracedFunction, share: number): number {
  return (batch * 1000) / latencyAt(surface, batch, share);
}

/** The part of requests that ended later than `sloMs`. */
export function violationsOf(arrivals: Float64Array, requests: readonly ServedRequest[], sloMs: number): number {
  const late = requests.filter(({ endedAt }, at) => endedAt - (arrivals[at] as number) > sloMs);
  return requests.length === 0 ? 0 : late.length / requests.length;
}

/** An event that one engine has and the other has not, or not then. */
export interface Divergence {
  at: number;
  /** Such as `request 17 starts`. */
  what: string;
  /** When it happens in the former engine and in the simulator, ms; undefined: never. */
  former: number | undefined;
  simulated: number | undefined;
}

/** Times that are as good as equal: both engines add up parts of runs. */
const toleranceMs = 1e-3;

/** The first event in which two plays of a trace differ; undefined: they are equal. */
export function firstDivergence(former: Played, simulated: Played): Divergence | undefined {
  let first: Divergence | undefined;
  const compare = (what: string, one: number | undefined, other: number | undefined): void => {
    if (one !== undefined && other !== undefined && Math.abs(one - other) <= toleranceMs) return;
    const at = Math.min(one ?? Infinity, other ?? Infinity);
    if (first === undefined || at < first.at) first = { at, what, former: one, simulated: other };
  };
  const pairs = <One>(ones: readonly One[], others: readonly One[], each: (at: number) => void): void => {
    for (let at = 0; at < Math.max(ones.length, others.length); at += 1) each(at);
  };
  pairs(former.requests, simulated.requests, (at) => {
    const [one, other] = [former.requests[at], simulated.requests[at]];
    compare(`request ${at} starts`, one?.startedAt, other?.startedAt);
    compare(`request ${at} ends`, one?.endedAt, other?.endedAt);
  });
  for (const kind of ['launches', 'retirements'] as const) {
    pairs(former[kind], simulated[kind], (at) => {
      compare(`${kind === 'launches' ? 'launch' : 'retirement'} ${at}`, former[kind][at], simulated[kind][at]);
    });
  }
  return first;
}
