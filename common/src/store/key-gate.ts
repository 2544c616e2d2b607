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

  /** Runs `work` once all earlier work on `key` has ended, well or badly; nobody else uses it meanwhile. */
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
