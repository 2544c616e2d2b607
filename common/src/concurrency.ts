// Work that concurrent callers share, and work that is bounded in number.
import type { Clock } from './system/clock.js';

/**
 * Work that is done once per key: all callers share the promise, also after it is fulfilled. A failure is kept for
 * `failureKeptMs`, so that failing work is retried, but not at every invocation.
 */
export class SharedWork<T> {
  private readonly byKey = new Map<string, Promise<T>>();

  constructor(
    private readonly clock: Clock,
    private readonly failureKeptMs: number,
  ) {}

  /**
   * Discards the result for `key`, so that the next call starts the work again. With `result`, only if this is the kept one.
   */
  forget(key: string, result: Promise<T> | undefined = this.byKey.get(key)): void {
    if (this.byKey.get(key) === result) this.byKey.delete(key);
  }

  /** Resolves once all work has ended, with success or not. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.byKey.values());
  }

  /** The kept result for `key`, or else that of `work`. */
  do(key: string, work: () => Promise<T>): Promise<T> {
    const known = this.byKey.get(key);
    if (known) return known;
    const started = work();
    this.byKey.set(key, started);
    started.catch(() => {
      this.clock.setBackgroundTimer(this.failureKeptMs, () => this.byKey.delete(key));
    });
    return started;
  }
}

/** Work is refused, because too much of it waits. */
export class TooMuchWaits extends Error {
  override name = 'TooMuchWaits';
}

/**
 * Returns a function that runs at most `atOnce` works at a time, in order. It rejects with TooMuchWaits if `maxWaiting`
 * wait.
 */
export function bounded(atOnce: number, maxWaiting: number): <Result>(work: () => Promise<Result>) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let running = 0;
  const leave = (): void => {
    running--;
    waiting.shift()?.();
  };
  const enter = (): Promise<void> | undefined => {
    if (running < atOnce && waiting.length === 0) {
      running++;
      return undefined;
    }
    return new Promise((resolve) => {
      waiting.push(() => {
        running++;
        resolve();
      });
    });
  };
  return async (work) => {
    if (waiting.length >= maxWaiting) throw new TooMuchWaits(`${maxWaiting} wait already.`);
    await enter();
    return work().finally(leave);
  };
}

/**
 * Returns a function that runs at most `atOnce` works at a time, of one owner at most all but one of them (one if `atOnce` is 1), and
 * takes waiting works of the owners in turn. It rejects with TooMuchWaits if `maxWaiting` works of the owner wait.
 */
export function fair(
  atOnce: number,
  maxWaiting: number,
): <Result>(owner: string, work: () => Promise<Result>) => Promise<Result> {
  const mostOfOne = Math.max(1, atOnce - 1);
  // Owners with waiting works, those first whose turn it is.
  const waiting = new Map<string, (() => void)[]>();
  const runningOf = new Map<string, number>();
  let running = 0;
  const mayBegin = (owner: string): boolean => running < atOnce && (runningOf.get(owner) ?? 0) < mostOfOne;
  const begin = (owner: string): void => {
    running++;
    runningOf.set(owner, (runningOf.get(owner) ?? 0) + 1);
  };
  const leave = (owner: string): void => {
    running--;
    const left = (runningOf.get(owner) ?? 1) - 1;
    if (left === 0) runningOf.delete(owner);
    else runningOf.set(owner, left);
    for (const [next, works] of waiting) {
      if (!mayBegin(next)) continue;
      waiting.delete(next);
      const work = works.shift();
      // Behind the other owners.
      if (works.length > 0) waiting.set(next, works);
      begin(next);
      work?.();
      return;
    }
  };
  return async (owner, work) => {
    const works = waiting.get(owner) ?? [];
    if (works.length === 0 && mayBegin(owner)) {
      begin(owner);
    } else {
      if (works.length >= maxWaiting) throw new TooMuchWaits(`${maxWaiting} wait already.`);
      await new Promise<void>((resolve) => {
        works.push(resolve);
        waiting.set(owner, works);
      });
    }
    return work().finally(() => leave(owner));
  };
}
