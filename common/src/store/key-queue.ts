// Mutual exclusion by key: work in turn, and many readers or one writer.
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

/** Lets many use a key at once, or one have it alone, in the order asked for. */
export class KeyGate {
  /** The end of the last work that has its key alone; it never rejects. */
  private readonly lastOwner = new Map<string, Promise<void>>();
  /** Who uses a key, or waits for its last owner to do so. */
  private readonly users = new Map<string, Set<Promise<unknown>>>();

  /** Runs `work` once all earlier owners of `key` have ended; later ones wait for its end. */
  use<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const owner = this.lastOwner.get(key);
    const result = owner === undefined ? work() : owner.then(work);
    const users = this.users.get(key) ?? new Set<Promise<unknown>>();
    this.users.set(key, users.add(result));
    const leave = (): void => {
      users.delete(result);
      if (users.size === 0 && this.users.get(key) === users) this.users.delete(key);
    };
    result.then(leave, leave);
    return result;
  }

  /** Runs `work` once all earlier work on `key` has ended, well or badly; no other work uses the key meanwhile. */
  own<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const earlier = [this.lastOwner.get(key), ...(this.users.get(key) ?? [])];
    this.users.delete(key);
    const result = Promise.allSettled(earlier).then(work);
    const ended = result.then(
      () => undefined,
      () => undefined,
    );
    this.lastOwner.set(key, ended);
    void ended.then(() => {
      if (this.lastOwner.get(key) === ended) this.lastOwner.delete(key);
    });
    return result;
  }
}
