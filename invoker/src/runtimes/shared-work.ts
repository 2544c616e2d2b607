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

  /** The next call for `key` starts anew; where `result` is given, only if that is what is kept. */
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
