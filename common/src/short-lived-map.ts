// Collections with bounded memory for keys that come and go.

/** After so many removals, and no fewer than there are entries, the entries are copied. */
const leastRemovals = 1000;

/**
 * A map whose entries come and go by the thousand a second, as those of activations in flight. V8's own replaces its table
 * after every few dozen removals and has the old table refer to the new one. Once one of them is in the old generation,
 * every later table, and what was in it, survives all collections of the young one: here they are never linked for long.
 * Source: V8, src/objects/ordered-hash-table.cc, Rehash and SetNextTable.
 */
export class ShortLivedMap<Key, Value> {
  private map = new Map<Key, Value>();
  private removals = 0;

  get size(): number {
    return this.map.size;
  }

  has(key: Key): boolean {
    return this.map.has(key);
  }

  get(key: Key): Value | undefined {
    return this.map.get(key);
  }

  set(key: Key, value: Value): void {
    this.map.set(key, value);
  }

  /** True if it was there. */
  delete(key: Key): boolean {
    if (!this.map.delete(key)) return false;
    this.removals += 1;
    if (this.removals >= leastRemovals && this.removals >= this.map.size) {
      this.removals = 0;
      this.map = new Map(this.map);
    }
    return true;
  }

  clear(): void {
    this.map = new Map();
    this.removals = 0;
  }

  /** The keys that are there now, in the order in which they came. */
  keys(): Key[] {
    return [...this.map.keys()];
  }

  /** The values that are there now, in the order in which they came. */
  values(): Value[] {
    return [...this.map.values()];
  }

  /** The entries that are there now, in the order in which they came. */
  entries(): [Key, Value][] {
    return [...this.map];
  }
}

/** The ids that came last: so many at least, twice as many at most. */
export class RecentIds {
  /** The newest, and those before them: two sets that take turns need no removal one by one. */
  private newest = new Set<string>();
  private before = new Set<string>();

  constructor(private readonly remembered: number) {}

  has(id: string): boolean {
    return this.newest.has(id) || this.before.has(id);
  }

  add(id: string): void {
    if (this.newest.size >= this.remembered) {
      this.before = this.newest;
      this.newest = new Set();
    }
    this.newest.add(id);
  }
}
