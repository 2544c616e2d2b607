import { performance } from 'node:perf_hooks';

/** A timer that was set on a Clock; opaque to its holder. */
export interface Timer {
  cancel(): void;
}

/** Time and timers. Everything outside common/system gets one as an argument. */
export interface Clock {
  /** Wall-clock time, epoch milliseconds (integer). It may step. */
  now(): number;
  /** Milliseconds since an arbitrary start, fractional, never going back. */
  monotonicMs(): number;
  /** Calls `run` once after `delayMs` (keeps the process alive). */
  setTimer(delayMs: number, run: () => void): Timer;
  /** As setTimer, but does not keep the process alive. */
  setBackgroundTimer(delayMs: number, run: () => void): Timer;
  /** Calls `run` after the input and output that is ready now has been handled. */
  defer(run: () => void): void;
}

/** Resolves after `delayMs` milliseconds on `clock`. */
export function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(delayMs, resolve);
  });
}

/** Calls `work` every `ms` milliseconds, without keeping the process alive, until it is cancelled. */
export function every(clock: Pick<Clock, 'setBackgroundTimer'>, ms: number, work: () => void): Timer {
  let isOver = false;
  const next = (): Timer =>
    clock.setBackgroundTimer(ms, () => {
      work();
      if (!isOver) timer = next();
    });
  let timer = next();
  return {
    cancel() {
      isOver = true;
      timer.cancel();
    },
  };
}

/** Resolves after the input and output that is ready now has been handled. */
export function othersFirst(clock: Pick<Clock, 'defer'>): Promise<void> {
  return new Promise((resolve) => clock.defer(resolve));
}

/** The operating system's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
  setBackgroundTimer(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
  defer: (run) => {
    setImmediate(run);
  },
};
