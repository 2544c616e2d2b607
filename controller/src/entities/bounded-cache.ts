import type { Clock } from '@gpuwhisk/common/system/clock';

/** How a cache is bounded. */
export interface CacheBounds {
  /** Time after being written at which an entry is forgotten, ms. */
  maxAgeMs: number;
  /** Entries at most; the oldest goes first. */
  maxEntries: number;
}

/**
 * Remembers what a slow lookup found, for a while after it was written. Lookups of one key at the same time are one.
 * What is not found (the lookup throws) is not remembered.
 */
export class BoundedCache<Value> {
  private readonly entries = new Map<string, { value: Value; expiresMs: number }>();
  private readonly pending = new Map<string, Promise<Value>>();

  constructor(
    private readonly clock: Clock,
    private readonly bounds: CacheBounds,
  ) {}

  /** The value if it is remembered. */
  get(key: string): Value | undefined {
    const entry = this.entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.expiresMs > this.clock.monotonicMs()) return entry.value;
    this.entries.delete(key);
    return undefined;
  }

  /** Remembers a value from now on; lookups under way no longer count. */
  set(key: string, value: Value): void {
    this.drop(key);
    if (this.entries.size >= this.bounds.maxEntries) {
      const oldest = this.entries.keys().next();
      if (oldest.done !== true) this.entries.delete(oldest.value);
    }
    this.entries.set(key, { value, expiresMs: this.clock.monotonicMs() + this.bounds.maxAgeMs });
  }

  /** Forgets a value; lookups under way are answered but not remembered. */
  drop(key: string): void {
    this.entries.delete(key);
    this.pending.delete(key);
  }

  /** Forgets everything, as drop does. */
  clear(): void {
    this.entries.clear();
    this.pending.clear();
  }

  /** The remembered value, or what `lookup` finds. Rejects as `lookup` does. */
  async resolve(key: string, lookup: () => Promise<Value>): Promise<Value> {
    const known = this.get(key);
    if (known !== undefined) return known;
    const underWay = this.pending.get(key);
    if (underWay !== undefined) return underWay;
    const found = lookup();
    this.pending.set(key, found);
    try {
      const value = await found;
      if (this.pending.get(key) === found) this.set(key, value);
      return value;
    } finally {
      if (this.pending.get(key) === found) this.pending.delete(key);
    }
  }
}
