// Work that is done once for all who ask for it, and work of which only so much runs at once.
import type { Clock } from '@gpuwhisk/common/system/clock';

/**
 * Work that is done once per key however many ask for it: callers share the promise, also after it was kept. A
 * failure is remembered for `failureKeptMs`, so that a hopeless job is not tried on every invocation, nor given
 * up for ever.
 */
export class SharedWork<T> {
  private readonly byKey = new Map<string, Promise<T>>();

  constructor(
    private readonly clock: Clock,
    private readonly failureKeptMs: number,
  ) {}

  /** The next call for `key` starts the work again; if `result` is given, only if that is the kept one. */
  forget(key: string, result: Promise<T> | undefined = this.byKey.get(key)): void {
    if (this.byKey.get(key) === result) this.byKey.delete(key);
  }

  /** Resolves once what was started has ended, well or not. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.byKey.values());
  }

  /** The result for `key`, from `work` if nothing was started or kept. */
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

/** Work is refused: too much of it waits. */
export class TooMuchWaits extends Error {
  override name = 'TooMuchWaits';
}

/** Runs at most `atOnce` works at a time, in their order; with `maxWaiting` waiting the next is rejected with TooMuchWaits. */
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
