// Rules that say each minute how many instances of a function should be loaded in the next, by histograms of idle times.
import { dayMinutes, hourMinutes, knownRequests } from './arrival-history.js';

/** The rule of one function. */
export interface Prewarmer {
  /**
   * Takes the requests of `minute`, which has ended (not a number: not known). Minutes that are left out count as not
   * known.
   */
  add(minute: number, requests: number): void;
  /** Instances to be loaded ahead in the minute after the newest. */
  target(): number;
}

/** Counts the minutes since the last request. */
export class IdleTime {
  /** Minutes without a request since the last, 0 if the newest has some; undefined before the first. */
  minutes: number | undefined;
  private minute: number | undefined;

  /** Returns the idle time, in minutes, that the requests of this minute have ended. */
  step(minute: number, requests: number): number | undefined {
    const passed = minute - (this.minute ?? minute - 1);
    this.minute = minute;
    const ended = this.minutes === undefined ? undefined : this.minutes + passed - 1;
    if ((knownRequests(requests) ?? 0) > 0) {
      this.minutes = 0;
      return ended;
    }
    if (this.minutes !== undefined) this.minutes += passed;
    return undefined;
  }
}

/** Settings of the hybrid histogram policy (Shahrad et al., ATC 2020, section 4.2). */
export const histogramDefaults = {
  /** Idle times up to so many minutes are told apart; an instance is kept for so long where they say nothing. */
  rangeMinutes: 240,
  /** Fractions of the idle times that are shorter than the unloading, and than the end of keeping. */
  head: 0.05,
  tail: 0.99,
  /** Part that is taken from the head and added to the tail. */
  margin: 0.1,
  /** The histogram counts from this coefficient of variation of its bins on. */
  leastVariation: 2,
  /** Idle times that it counts from, and the part of them beyond the range from which on it does not. */
  leastIdleTimes: 10,
  mostBeyond: 0.5,
};

/** Idle minutes between which an instance is loaded: from `from`, and no longer from `until`. */
interface KeptBetween {
  from: number;
  until: number;
}

/** Idle times by minute. */
class IdleHistogram {
  private readonly bins = new Float64Array(histogramDefaults.rangeMinutes);
  private total = 0;
  private beyond = 0;
  /** Minute and idle time of what is counted, the oldest first; absent: nothing is forgotten. */
  private readonly newest: { minute: number; idle: number; times: number }[] | undefined;

  constructor(private readonly windowMinutes = Infinity) {
    this.newest = windowMinutes === Infinity ? undefined : [];
  }

  add(minute: number, idle: number, times: number): void {
    if (times <= 0) return;
    this.count(idle, times);
    this.newest?.push({ minute, idle, times });
  }

  /** Forgets idle times that ended before the window. */
  forget(minute: number): void {
    while (this.newest !== undefined) {
      const [oldest] = this.newest;
      if (oldest === undefined || oldest.minute > minute - this.windowMinutes) return;
      this.count(oldest.idle, -oldest.times);
      this.newest.shift();
    }
  }

  private count(idle: number, times: number): void {
    this.total += times;
    if (idle < this.bins.length) this.bins[idle] = (this.bins[idle] ?? 0) + times;
    else this.beyond += times;
  }

  /** When to load and unload by these idle times; undefined if they are too few or say nothing. */
  window(): KeptBetween | undefined {
    const { leastIdleTimes, mostBeyond, leastVariation, head, tail, margin } = histogramDefaults;
    const inside = this.total - this.beyond;
    if (inside < leastIdleTimes || this.beyond > mostBeyond * this.total) return undefined;
    const mean = inside / this.bins.length;
    const variance = this.bins.reduce((sum, bin) => sum + (bin - mean) ** 2, 0) / this.bins.length;
    if (Math.sqrt(variance) < leastVariation * mean) return undefined;
    return {
      from: Math.floor(this.quantile(head * inside) * (1 - margin)),
      until: Math.ceil((this.quantile(tail * inside) + 1) * (1 + margin)),
    };
  }

  private quantile(rank: number): number {
    let sum = 0;
    for (const [idle, count] of this.bins.entries()) {
      sum += count;
      if (count > 0 && sum >= rank) return idle;
    }
    return this.bins.length;
  }
}

/** Takes idle times and returns the rule of their histograms; `between` combines these. */
function byHistograms(histograms: readonly IdleHistogram[], between: () => KeptBetween | undefined): Prewarmer {
  const idle = new IdleTime();
  return {
    add(minute, requests) {
      const ended = idle.step(minute, requests);
      for (const histogram of histograms) {
        if (ended !== undefined) histogram.add(minute, ended, 1);
        // Requests of one minute follow each other within it.
        histogram.add(minute, 0, (knownRequests(requests) ?? 0) - 1);
        histogram.forget(minute);
      }
    },
    target() {
      if (idle.minutes === undefined) return 0;
      const { from, until } = between() ?? { from: 0, until: histogramDefaults.rangeMinutes };
      return idle.minutes >= from && idle.minutes < until ? 1 : 0;
    },
  };
}

/**
 * Hybrid histogram policy: unloads until the 5th percentile of the idle times less 10 %, and keeps until the 99th more
 * 10 %. A function whose idle times are few, flat or mostly beyond the range is kept for the range; the original
 * forecasts the last kind with ARIMA.
 */
export function hhpPrewarm(): Prewarmer {
  const histogram = new IdleHistogram();
  return byHistograms([histogram], () => histogram.window());
}

/** Windows of LSTH and the weight of the long one (INFless, ASPLOS 2022, section 3.5). */
const lsth = { shortMinutes: hourMinutes, longMinutes: dayMinutes, longWeight: 0.5 };

/**
 * Long-short-term histogram: the weighted mean of the windows by the idle times of the last hour and of the last day.
 * The long one counts alone where the short one says nothing; without both an instance is kept for the range.
 */
export function lsthPrewarm(): Prewarmer {
  const short = new IdleHistogram(lsth.shortMinutes);
  const long = new IdleHistogram(lsth.longMinutes);
  return byHistograms([short, long], () => {
    const [ofShort, ofLong] = [short.window(), long.window()];
    if (ofShort === undefined || ofLong === undefined) return ofLong ?? ofShort;
    const mixed = (one: number, other: number): number => lsth.longWeight * one + (1 - lsth.longWeight) * other;
    return {
      from: Math.floor(mixed(ofLong.from, ofShort.from)),
      until: Math.ceil(mixed(ofLong.until, ofShort.until)),
    };
  });
}
