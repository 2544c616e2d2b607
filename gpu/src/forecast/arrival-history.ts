/* eslint-disable @typescript-eslint/no-non-null-assertion -- indices are taken modulo the rings' lengths or bounded by the bins */
// A function's requests by minute as forecasts see them: rings of a day, and statistics of its idle times.

/** Minutes of the short and of the long window. */
export const hourMinutes = 60;
export const dayMinutes = 1440;
/** Minutes that a history keeps: a day, and the hour a day before the last one. */
const keptMinutes = dayMinutes + hourMinutes;

/** More requests in a minute count as so many: sums of their squares stay exact to 0.1. */
const mostRequests = 1e7;

/** A minute's requests, or undefined if they are not known: not a number, negative or infinite. */
export function knownRequests(requests: number): number | undefined {
  return Number.isFinite(requests) && requests >= 0 ? requests : undefined;
}

/** Idle times below this many minutes have a bin each; above, eight bins double the time. */
const exactBins = 64;
const idleBins = exactBins + 8 * 5;

/** The bin of an idle time, in minutes without a request. */
export function idleBin(minutes: number): number {
  if (minutes < exactBins) return minutes;
  return Math.min(idleBins - 1, exactBins + Math.floor(8 * Math.log2(minutes / exactBins)));
}

/**
 * How often requests followed an idle time: by idle time so far, how many minutes came next and how many of them had
 * requests. Older minutes count less, half after `halfLifeMinutes`.
 */
class IdleStatistics {
  private readonly minutes = new Float32Array(idleBins);
  private readonly requested = new Float32Array(idleBins);
  /** Weight of a new minute, which grows in place of the decay of all others. */
  private weight = 1;
  private readonly growth: number;

  constructor(halfLifeMinutes: number) {
    this.growth = 2 ** (1 / halfLifeMinutes);
  }

  /** A minute after `idle` minutes without a request had requests, or had none. */
  add(idle: number, isActive: boolean): void {
    const bin = idleBin(idle);
    this.minutes[bin]! += this.weight;
    if (isActive) this.requested[bin]! += this.weight;
  }

  /** A minute has passed. */
  age(): void {
    this.weight *= this.growth;
    if (this.weight < 1e6) return;
    for (let bin = 0; bin < idleBins; bin += 1) {
      this.minutes[bin]! /= this.weight;
      this.requested[bin]! /= this.weight;
    }
    this.weight = 1;
  }

  /** Weighted minutes that followed `idle` minutes without a request, those of `around` bins on each side included. */
  seen(idle: number, around = 0): number {
    return this.sum(this.minutes, idle, around) / this.weight;
  }

  /** Probability of requests in the next minute after `idle` minutes without; `prior` where nothing was seen. */
  hazard(idle: number, prior: number, around = 0): number {
    const requested = this.sum(this.requested, idle, around) / this.weight;
    return (requested + prior / 2) / (this.seen(idle, around) + 0.5);
  }

  private sum(of: Float32Array, idle: number, around: number): number {
    const bin = idleBin(idle);
    let sum = 0;
    const last = Math.min(idleBins - 1, bin + around);
    for (let at = Math.max(0, bin - around); at <= last; at += 1) sum += of[at]!;
    return sum;
  }
}

/** Sums over the last minutes of a window whose requests are known. */
export interface WindowSums {
  known: number;
  active: number;
  requests: number;
  squares: number;
}

/** Half-lives of the idle times' statistics, minutes. */
const halfLives = { short: 240, long: 3 * dayMinutes };

/** The history of one function. A call a minute; minutes that were left out count as not known. */
export class ArrivalHistory {
  /** The newest minute, counted from any fixed point; undefined before the first. */
  minute: number | undefined;
  /** Minutes since the last one with requests, 0 if the newest has some; since the first, before any request. */
  idle = 0;
  /** The last two idle times that ended, minutes, the newer first; 0 before them. */
  gaps: [number, number] = [0, 0];
  readonly hour: WindowSums = { known: 0, active: 0, requests: 0, squares: 0 };
  readonly wholeDay: WindowSums = { known: 0, active: 0, requests: 0, squares: 0 };
  readonly idleTimes = { short: new IdleStatistics(halfLives.short), long: new IdleStatistics(halfLives.long) };
  private isGapKnown = false;
  private readonly day = new Float32Array(keptMinutes).fill(NaN);

  /**
   * The requests of `minute`, which has ended; not a number: not known. Throws RangeError for a minute that is not an
   * integer after the newest.
   */
  add(minute: number, requests: number): void {
    const newest = this.minute ?? minute - 1;
    if (!Number.isInteger(minute) || minute <= newest) {
      throw new RangeError(`Minute ${minute} does not follow minute ${newest}.`);
    }
    const missing = Math.min(minute - newest - 1, keptMinutes);
    for (let left = missing; left > 0; left -= 1) this.put(minute - left, undefined);
    this.put(minute, knownRequests(requests));
  }

  private put(minute: number, requests: number | undefined): void {
    count(this.wholeDay, this.day[slot(minute - dayMinutes)]!, -1);
    count(this.hour, this.day[slot(minute - hourMinutes)]!, -1);
    // As the ring keeps it, so that the sums lose later exactly what they gain now.
    const value = Math.fround(Math.min(requests ?? NaN, mostRequests));
    this.day[slot(minute)] = value;
    count(this.wholeDay, value, 1);
    count(this.hour, value, 1);
    for (const statistics of [this.idleTimes.short, this.idleTimes.long]) {
      statistics.age();
      if (requests !== undefined && this.isGapKnown) statistics.add(this.idle, requests > 0);
    }
    if (requests !== undefined && requests > 0) {
      if (this.isGapKnown) this.gaps = [this.idle, this.gaps[0]];
      this.idle = 0;
      this.isGapKnown = true;
    } else {
      this.idle += 1;
      // An idle time with an unknown minute in it says nothing.
      if (requests === undefined) this.isGapKnown = false;
    }
    this.minute = minute;
  }

  /** Requests `ago` minutes before the newest minute, 0 to 1,499; NaN: not known. */
  at(ago: number): number {
    return this.day[slot((this.minute ?? 0) - ago)]!;
  }

  /**
   * Pearson correlation of the last hour's requests with those of a day before, over the minutes that are known in
   * both; undefined for fewer than 30 of them or a constant hour.
   */
  dayCorrelation(): number | undefined {
    let [n, sumX, sumY, xx, yy, xy] = [0, 0, 0, 0, 0, 0];
    for (let ago = 0; ago < hourMinutes; ago += 1) {
      const x = this.at(ago);
      const y = this.at(dayMinutes + ago);
      if (Number.isNaN(x) || Number.isNaN(y)) continue;
      n += 1;
      sumX += x;
      sumY += y;
      xx += x * x;
      yy += y * y;
      xy += x * y;
    }
    const spread = (n * xx - sumX * sumX) * (n * yy - sumY * sumY);
    return n < hourMinutes / 2 || spread <= 0 ? undefined : (n * xy - sumX * sumY) / Math.sqrt(spread);
  }
}

function slot(minute: number): number {
  return ((minute % keptMinutes) + keptMinutes) % keptMinutes;
}

function count(sums: WindowSums, requests: number, sign: 1 | -1): void {
  if (Number.isNaN(requests)) return;
  sums.known += sign;
  sums.requests += sign * requests;
  sums.squares += sign * requests * requests;
  if (requests > 0) sums.active += sign;
}

/** Mean and standard deviation of a window's requests; 0 and 1 of an empty one, deviation 1 of a constant one. */
export function meanAndDeviation({ known, requests, squares }: WindowSums): { mean: number; deviation: number } {
  if (known === 0) return { mean: 0, deviation: 1 };
  const mean = requests / known;
  const variance = squares / known - mean * mean;
  return { mean, deviation: variance > 1e-9 * (1 + mean * mean) ? Math.sqrt(variance) : 1 };
}
