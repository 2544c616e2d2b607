// The last request of each function, and its arrivals by second and by minute.
import { keepNewest } from '@gpuwhisk/common/collections';
import { functionKey } from '../ledger/occupancy.js';

/** Functions that are kept at most; beyond that the one with the oldest last request is removed. */
const mostFunctions = 1000;

/** Weight of the newest run in the mean time. */
const newest = 0.2;

/** A function in one namespace, and what is known of its requests. */
export interface LoggedFunction<Request> {
  /** The last one. */
  last: Request;
  counts: ArrivalCounts;
  /** Mean time of its last runs as they were served, without starts, ms; absent: none has ended. */
  runMs?: number;
}

/** The last request and the arrivals of each function. */
export class FunctionLog<Request> {
  private readonly functions = new Map<string, LoggedFunction<Request>>();

  /** A request has come at `at`, ms. */
  arrived(work: { action: string; namespace: string }, request: Request, at: number): void {
    const key = functionKey(work);
    const known = this.functions.get(key) ?? { last: request, counts: new ArrivalCounts() };
    known.last = request;
    known.counts.add(at);
    keepNewest(this.functions, key, known, mostFunctions);
  }

  /** A run has ended, which took `ms` without its start. */
  ran(work: { action: string; namespace: string }, ms: number): void {
    const known = this.functions.get(functionKey(work));
    if (known !== undefined) known.runMs = known.runMs === undefined ? ms : known.runMs + newest * (ms - known.runMs);
  }

  /** The entry of a function, or undefined if it is not known. */
  of(work: { action: string; namespace: string }): LoggedFunction<Request> | undefined {
    return this.functions.get(functionKey(work));
  }

  /** The entry of a function by the key of its instances, or undefined if it is not known. */
  ofKey(key: string): LoggedFunction<Request> | undefined {
    return this.functions.get(key);
  }

  /** All entries, the one with the oldest last request first. */
  all(): Iterable<LoggedFunction<Request>> {
    return this.functions.values();
  }
}

const secondMs = 1000;
const minuteMs = 60_000;

/** Seconds and minutes that arrivals are counted by: a minute, and a day, in which load repeats itself. */
export const countedSeconds = 60;
export const countedMinutes = 1440;

/** Arrivals of one function by second and by minute, of the last 60 and 1,440 of them. */
export class ArrivalCounts {
  private readonly seconds = new Ring(countedSeconds, secondMs);
  private readonly minutes = new Ring(countedMinutes, minuteMs);

  /** Counts one at `at`, ms. Where the clock was set back it counts as of the latest time that was seen. */
  add(at: number): void {
    this.seconds.add(at);
    this.minutes.add(at);
  }

  /** Arrivals in each of the last 60 seconds, the second of `at` (ms) last. */
  bySecond(at: number): Uint32Array {
    return this.seconds.until(at);
  }

  /** Arrivals in each of the last 1,440 minutes, the minute of `at` (ms) last. */
  byMinute(at: number): Uint32Array {
    return this.minutes.until(at);
  }
}

/** Counts of the last periods. */
class Ring {
  private readonly counts: Uint32Array;
  /** The newest period that is counted. */
  private newest = -Infinity;

  constructor(
    length: number,
    private readonly periodMs: number,
  ) {
    this.counts = new Uint32Array(length);
  }

  add(at: number): void {
    this.moveTo(Math.floor(at / this.periodMs));
    // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- placeOf gives an index of the counts
    this.counts[this.placeOf(this.newest)]! += 1;
  }

  until(at: number): Uint32Array {
    this.moveTo(Math.floor(at / this.periodMs));
    const next = this.placeOf(this.newest + 1);
    const ordered = new Uint32Array(this.counts.length);
    ordered.set(this.counts.subarray(next));
    ordered.set(this.counts.subarray(0, next), this.counts.length - next);
    return ordered;
  }

  private moveTo(period: number): void {
    const { length } = this.counts;
    if (period - this.newest >= length) this.counts.fill(0);
    else for (let passed = this.newest + 1; passed <= period; passed += 1) this.counts[this.placeOf(passed)] = 0;
    this.newest = Math.max(this.newest, period);
  }

  private placeOf(period: number): number {
    const { length } = this.counts;
    return ((period % length) + length) % length;
  }
}
