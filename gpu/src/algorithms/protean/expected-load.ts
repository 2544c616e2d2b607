// Requests that functions are expected to have in the next window, by an exponentially weighted moving average.
import { countedSeconds } from '../../view/function-log.js';
import { keyOf } from '../../stages/scale/wanted.js';
import type { FunctionState, Task } from '../../view/view.js';

/** Fewer requests in a window than this are none. */
const leastExpected = 0.5;

/** A function of which requests are expected. */
export interface ExpectedFunction {
  task: Task;
  /** Requests in a window. */
  requests: number;
  /** Batches that are there at once, on average rounded up: requests a second times the time of a run (Little's law). */
  batches: number;
}

/** Averages of the requests of each function in windows. */
export class ExpectedLoad {
  private averages = new Map<string, number>();

  /** `windowS`: seconds of a window, whole; `weight`: of the newest window, 0 to 1. Throws RangeError for others. */
  constructor(
    private readonly windowS: number,
    private readonly weight: number,
  ) {
    if (!Number.isInteger(windowS) || windowS < 1 || windowS >= countedSeconds) {
      throw new RangeError(`a window has 1 to ${countedSeconds - 1} whole seconds, not ${windowS}`);
    }
    if (!(weight > 0 && weight <= 1))
      throw new RangeError(`the weight of a window is above 0 and at most 1, not ${weight}`);
  }

  /** Counts the window that ends with the second before `at` (ms). Functions that are not in `functions` are dropped. */
  count(functions: readonly FunctionState[], at: number): void {
    const averages = new Map<string, number>();
    for (const { task, arrivals } of functions) {
      const key = keyOf(task);
      const came = arrivals
        .bySecond(at)
        .subarray(-1 - this.windowS, -1)
        .reduce((sum, count) => sum + count, 0);
      const before = this.averages.get(key);
      averages.set(key, before === undefined ? came : before + this.weight * (came - before));
    }
    this.averages = averages;
  }

  /** The functions of which at least every other window is expected to have a request. */
  expected(functions: readonly FunctionState[]): ExpectedFunction[] {
    return functions.flatMap((one) => {
      const requests = this.averages.get(keyOf(one.task)) ?? 0;
      if (requests < leastExpected) return [];
      const perSecond = requests / this.windowS;
      return { task: one.task, requests, batches: Math.ceil((perSecond * runS(one)) / Math.max(1, one.task.batch)) };
    });
  }

  saved(): [string, number][] {
    return [...this.averages];
  }

  restore(averages: readonly (readonly [string, number])[]): void {
    this.averages = new Map(averages);
  }
}

/** Seconds that a run takes: as runs were served, else alone; a window of unknown length counts as one second. */
function runS({ runMs, task }: FunctionState): number {
  const ms = runMs ?? task.soloMs ?? NaN;
  return ms > 0 ? ms / 1000 : 1;
}
