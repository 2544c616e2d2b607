import { ArrivalCounts } from './arrival-counts.js';
import { functionKey } from './occupancy.js';

/** Functions that are known, at most; then the one goes whose last request is the oldest. */
const mostFunctions = 1000;

/** A function in one namespace, and what is known of its requests. */
export interface LoggedFunction<Request> {
  /** The last one. */
  last: Request;
  counts: ArrivalCounts;
}

/** The last request and the arrivals of each function. */
export class FunctionLog<Request> {
  private readonly functions = new Map<string, LoggedFunction<Request>>();

  /** A request has come at `at`, ms. */
  arrived(work: { action: string; namespace: string }, request: Request, at: number): void {
    const key = functionKey(work);
    const counts = this.functions.get(key)?.counts ?? new ArrivalCounts();
    counts.add(at);
    this.functions.delete(key);
    this.functions.set(key, { last: request, counts });
    const [oldest] = this.functions.keys();
    if (this.functions.size > mostFunctions && oldest !== undefined) this.functions.delete(oldest);
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
