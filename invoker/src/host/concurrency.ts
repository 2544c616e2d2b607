// Work that concurrent callers share, and work that is bounded in number.
import type { Clock } from '@gpuwhisk/common/system/clock';

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
