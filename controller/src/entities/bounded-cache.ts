import type { Clock } from '@gpuwhisk/common/system/clock';

/** Bounds of a cache. */
export interface CacheBounds {
  /** Age at which an entry expires, counted from its write, ms. */
  maxAgeMs: number;
  /** Most entries; beyond this bound the oldest is removed. */
  maxEntries: number;
}

/**
 * Caches the results of a slow lookup for a limited time. Concurrent lookups of one key share one call. A lookup that throws
 * is not cached.
 */
export class BoundedCache<Value> {
  private readonly entries = new Map<string, { value: Value; expiresMs: number }>();
  private readonly pending = new Map<string, Promise<Value>>();

  constructor(
    private readonly clock: Clock,
    private readonly bounds: CacheBounds,
  ) {}

  /** The cached value, or undefined. */
  get(key: string): Value | undefined {
    const entry = this.entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.expiresMs > this.clock.monotonicMs()) return entry.value;
    this.entries.delete(key);
    return undefined;
  }

  /** Caches a value; lookups in progress no longer change the entry. */
  set(key: string, value: Value): void {
    this.drop(key);
    if (this.entries.size >= this.bounds.maxEntries) {
      const oldest = this.entries.keys().next();
      if (oldest.done !== true) this.entries.delete(oldest.value);
    }
    this.entries.set(key, { value, expiresMs: this.clock.monotonicMs() + this.bounds.maxAgeMs });
  }

  /** Removes a value; lookups in progress return their result without caching it. */
  drop(key: string): void {
    this.entries.delete(key);
    this.pending.delete(key);
  }

  /** Removes all values, each as `drop` does. */
  clear(): void {
    this.entries.clear();
    this.pending.clear();
  }

  /** The cached value, or the result of `lookup`. Rejects as `lookup` does. */
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
