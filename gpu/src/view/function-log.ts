import { ArrivalCounts } from './arrival-counts.js';
import { functionKey } from './occupancy.js';

/** Functions that are known, at most; then the one goes whose last request is the oldest. */
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
    this.functions.delete(key);
    this.functions.set(key, known);
    const [oldest] = this.functions.keys();
    if (this.functions.size > mostFunctions && oldest !== undefined) this.functions.delete(oldest);
  }

  /** A run has ended, which took `ms` without its start. */
  ran(work: { action: string; namespace: string }, ms: number): void {
    const known = this.functions.get(functionKey(work));
    if (known !== undefined) known.runMs = known.runMs === undefined ? ms : known.runMs + newest * (ms - known.runMs);
  }

  /** That of a function; undefined if it is not known. */
  of(work: { action: string; namespace: string }): LoggedFunction<Request> | undefined {
    return this.functions.get(functionKey(work));
  }

  /** All that are known, those with the oldest last request first. */
  all(): Iterable<LoggedFunction<Request>> {
    return this.functions.values();
  }
}
