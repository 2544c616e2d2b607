import { ShortLivedMap } from '../short-lived-map.js';

/** Work on one key at a time, in the order asked for; different keys do not wait for each other. */
export class KeyQueue {
  private readonly last = new ShortLivedMap<string, Promise<void>>();

  /** Whether work on `key` is under way. */
  isBusy(key: string): boolean {
    return this.last.has(key);
  }

  /** Runs `work` once all earlier work on `key` has ended, well or badly. */
  run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.last.get(key);
    const result = before ? before.then(work) : work();
    this.hold(
      key,
      result.then(
        () => undefined,
        () => undefined,
      ),
    );
    return result;
  }

  /** Notes work on `key` that ends with `end`, which must not reject. There is none on it now. */
  hold(key: string, end: Promise<void>): void {
    this.last.set(key, end);
    void end.then(() => this.free(key, end));
  }

  /** Notes one piece of work on many idle keys, more cheaply than hold. */
  holdAll(keys: readonly string[], end: Promise<void>): void {
    for (const key of keys) this.last.set(key, end);
    void end.then(() => {
      for (const key of keys) this.free(key, end);
    });
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    while (this.last.size > 0) await Promise.all(this.last.values());
  }

  private free(key: string, end: Promise<void>): void {
    if (this.last.get(key) === end) this.last.delete(key);
  }
}
