import type { Clock, Timer } from '@gpuwhisk/common/system/clock';

interface Pending {
  dueMs: number;
  /** Timers due at once run in the order they were set. */
  order: number;
  run: () => void;
}

/** Where simulated time starts, epoch ms. */
export const epochMs = 1_700_000_000_000;

/**
 * A clock that advances only in steps. Between two timers all started work (promises, deferred work) runs to its end,
 * so that a run is the same every time.
 */
export class SimulatedClock implements Clock {
  private timers: Pending[] = [];
  private deferred: (() => void)[] = [];
  private elapsedMs = 0;
  private set = 0;

  now(): number {
    return epochMs + Math.floor(this.elapsedMs);
  }

  monotonicMs(): number {
    return this.elapsedMs;
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const pending: Pending = { dueMs: this.elapsedMs + Math.max(0, delayMs), order: this.set++, run };
    this.timers.push(pending);
    return {
      cancel: () => {
        this.timers = this.timers.filter((each) => each !== pending);
      },
    };
  }

  setBackgroundTimer(delayMs: number, run: () => void): Timer {
    return this.setTimer(delayMs, run);
  }

  defer(run: () => void): void {
    this.deferred.push(run);
  }

  /** Lets started work end, then advances to the next timer and runs it. False if there is no timer to run. */
  async step(untilMs = Infinity): Promise<boolean> {
    await this.settle();
    const next = this.next();
    if (!next || next.dueMs > untilMs) return false;
    this.timers = this.timers.filter((each) => each !== next);
    this.elapsedMs = Math.max(this.elapsedMs, next.dueMs);
    next.run();
    await this.settle();
    return true;
  }

  /** Advances time by `durationMs` and runs timers that are due. */
  async runFor(durationMs: number): Promise<void> {
    const untilMs = this.elapsedMs + durationMs;
    while (await this.step(untilMs));
    this.elapsedMs = untilMs;
  }

  /** Lets time pass in which the process runs nothing: timers that come due run late. */
  stall(durationMs: number): void {
    this.elapsedMs += durationMs;
  }

  /** Steps until `work` has settled; throws if no timer is left that could settle it. */
  async runUntil<Result>(work: Promise<Result>): Promise<Result> {
    let settled = false;
    const noted = work.finally(() => {
      settled = true;
    });
    noted.catch(() => undefined);
    await this.settle();
    while (!settled) {
      if (!(await this.step())) throw new Error('nothing is left to run, and the work has not ended');
    }
    return noted;
  }

  /** Forgets all timers and deferred work, as the death of a process does. */
  dropAll(): void {
    this.timers = [];
    this.deferred = [];
  }

  private next(): Pending | undefined {
    let next: Pending | undefined;
    for (const each of this.timers) {
      if (!next || each.dueMs < next.dueMs || (each.dueMs === next.dueMs && each.order < next.order)) next = each;
    }
    return next;
  }

  /** Runs microtasks and deferred work until neither is left. */
  private async settle(): Promise<void> {
    do {
      // One turn of the real event loop: every microtask runs before its end.
      await new Promise((resolve) => setImmediate(resolve));
      const deferred = this.deferred;
      this.deferred = [];
      for (const run of deferred) run();
      if (deferred.length > 0) await new Promise((resolve) => setImmediate(resolve));
    } while (this.deferred.length > 0);
  }
}
