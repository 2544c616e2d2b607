// Cold starts and waste of pre-warming rules on traces by minute.
import type { Forecast } from '@gpuwhisk/gpu/forecast/ls-lstm';
import { IdleTime, type Prewarmer } from '@gpuwhisk/gpu/forecast/prewarm-rules';
import type { RequestTrace } from '../data/request-traces.js';

/** Minutes `from` to `to` of a trace, with forecasts by a model that was trained without them, minute by minute. */
export interface TracePart {
  trace: RequestTrace;
  from: number;
  to: number;
  forecasts: readonly Forecast[];
}

/** Sums over minutes. */
export interface PrewarmScore {
  /** With requests; of these those that were not loaded ahead; loaded ones without a request. */
  active: number;
  cold: number;
  idle: number;
  requests: number;
}

/** Cold minutes over active minutes. */
export const coldRate = ({ cold, active }: PrewarmScore): number => (active === 0 ? 0 : cold / active);
/** Cold starts over requests, one a cold minute (thesis, eq. 3.14). */
export const coldRequests = ({ cold, requests }: PrewarmScore): number => (requests === 0 ? 0 : cold / requests);
/** Idle minutes over loaded minutes, those of cold starts included (thesis, eq. 3.13). */
export const wasteRate = ({ idle, active }: PrewarmScore): number => (idle + active === 0 ? 0 : idle / (idle + active));

/** Sum of scores. */
export function sumOf(scores: readonly PrewarmScore[]): PrewarmScore {
  const sum: PrewarmScore = { active: 0, cold: 0, idle: 0, requests: 0 };
  for (const one of scores) for (const key of ['active', 'cold', 'idle', 'requests'] as const) sum[key] += one[key];
  return sum;
}

/** Score of a part whose minute `at` was loaded ahead where `isLoaded(at)`. */
export function scoreOf({ trace, from, to }: TracePart, isLoaded: (at: number) => boolean): PrewarmScore {
  const score = { active: 0, cold: 0, idle: 0, requests: 0 };
  for (let at = from; at < to; at += 1) {
    const requests = trace.minutes[at] ?? 0;
    score.requests += requests;
    if (requests > 0) score.active += 1;
    if (requests > 0 && !isLoaded(at)) score.cold += 1;
    if (requests === 0 && isLoaded(at)) score.idle += 1;
  }
  return score;
}

/** Keeps an instance for `minutes` whole minutes after the last one with requests. */
export function keepAlivePrewarm(minutes: number): Prewarmer {
  const idle = new IdleTime();
  return {
    add: (minute, requests) => void idle.step(minute, requests),
    target: () => (idle.minutes !== undefined && idle.minutes < minutes ? 1 : 0),
  };
}

/** Score of a rule that has seen the trace from its start. */
export function ruleScore(part: TracePart, newRule: () => Prewarmer): PrewarmScore {
  const rule = newRule();
  let ahead = 0;
  const loaded = part.trace.minutes.slice(0, part.to).map((requests, minute) => {
    const now = ahead;
    rule.add(minute, requests);
    ahead = rule.target();
    return now > 0;
  });
  return scoreOf(part, (at) => loaded[at] ?? false);
}

/** The forecast rule's settings. */
export interface Knob {
  /** The target holds with this probability, 0 to 1 exclusive: between cold starts and waste. */
  quantile: number;
  /** Minutes for which a higher target stays. */
  coolDownMinutes: number;
}

/** Those of SMORE's controller (thesis, section 3.4.2). */
export const defaultKnob: Knob = { quantile: 0.99, coolDownMinutes: 2 };

/** Every setting that is tried: P(any request) from 0.95 down to 0.0005, with the cool-down and with shorter ones. */
export const knobs: readonly Knob[] = [2, 1, 0].flatMap((coolDownMinutes) =>
  Array.from({ length: 106 }, (_, step) => ({ quantile: 1 - 0.95 * 0.931 ** step, coolDownMinutes })),
);

/** Keeps a target up for some minutes after it fell. */
class CoolDown {
  /** Targets of the last minutes, the oldest first. */
  private readonly last: number[] = [];

  constructor(private readonly minutes: number) {}

  /** The highest of this minute's target and those of the `minutes` minutes before it. */
  step(target: number): number {
    this.last.push(target);
    if (this.last.length > this.minutes + 1) this.last.shift();
    return Math.max(...this.last);
  }
}

/** Score of the forecast rule, loaded where the probability of requests is above 1 − quantile. */
export function forecastScore(part: TracePart, { quantile, coolDownMinutes }: Knob): PrewarmScore {
  const coolDown = new CoolDown(coolDownMinutes);
  const loaded = part.forecasts.map(({ active }) => coolDown.step(active > 1 - quantile ? 1 : 0) > 0);
  return scoreOf(part, (at) => loaded[at - part.from] ?? false);
}

/** A knob with its score. */
export interface Tried {
  knob: Knob;
  score: PrewarmScore;
}

/** Score of every knob over `parts`. */
export function tryAll(parts: readonly TracePart[]): Tried[] {
  return knobs.map((knob) => ({ knob, score: sumOf(parts.map((part) => forecastScore(part, knob))) }));
}

/** Least idle minutes with a cold-start rate of at most `mostCold`; else the fewest cold starts. */
export function bestOf(tried: readonly Tried[], mostCold: number): Tried {
  const allowed = tried.filter(({ score }) => coldRate(score) <= mostCold);
  const [best] =
    allowed.length > 0
      ? allowed.toSorted((one, other) => one.score.idle - other.score.idle)
      : tried.toSorted((one, other) => one.score.cold - other.score.cold || one.score.idle - other.score.idle);
  if (best === undefined) throw new RangeError('No knob was tried.');
  return best;
}

/** Whether intervals between active minutes before `until` vary by less than half their mean. */
export function isRegular({ minutes }: RequestTrace, until: number): boolean {
  const active = minutes.slice(0, until).flatMap((requests, at) => (requests > 0 ? at : []));
  const intervals = active.slice(1).map((at, index) => at - (active[index] ?? 0));
  if (intervals.length < 2) return false;
  const mean = intervals.reduce((sum, one) => sum + one, 0) / intervals.length;
  const variance = intervals.reduce((sum, one) => sum + (one - mean) ** 2, 0) / intervals.length;
  return Math.sqrt(variance) < mean / 2;
}

/**
 * A bound on rules that see how long each function has been idle: the least idle minutes with a cold-start rate of at
 * most `mostCold`, of the rule that knows of each part how often requests follow each idle time in this very part.
 */
export function idleTimeBound(parts: readonly TracePart[], mostCold: number): number {
  // Idle times with the minutes that followed, and how many of these were active.
  const choices = parts.flatMap(({ trace, from, to }) => {
    const byIdle = new Map<number, { minutes: number; active: number }>();
    let idle = trace.minutes
      .slice(0, from)
      .reverse()
      .findIndex((requests) => requests > 0);
    if (idle < 0) idle = from;
    for (let at = from; at < to; at += 1) {
      const seen = byIdle.get(idle) ?? { minutes: 0, active: 0 };
      const isActive = (trace.minutes[at] ?? 0) > 0;
      byIdle.set(idle, { minutes: seen.minutes + 1, active: seen.active + (isActive ? 1 : 0) });
      idle = isActive ? 0 : idle + 1;
    }
    return [...byIdle.values()];
  });
  const active = choices.reduce((sum, one) => sum + one.active, 0);
  let covered = 0;
  let wasted = 0;
  // Most active minutes per loaded minute first; the last choice counts in part, so that this stays a lower bound.
  for (const one of choices.toSorted((a, b) => b.active / b.minutes - a.active / a.minutes)) {
    const missing = (1 - mostCold) * active - covered;
    if (missing <= 0 || one.active === 0) break;
    const part = Math.min(1, missing / one.active);
    covered += part * one.active;
    wasted += part * (one.minutes - one.active);
  }
  return wasted;
}
