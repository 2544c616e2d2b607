import type { JsonValue } from '../json.js';
import type { Clock } from '../system/clock.js';
import type {
  ClusterState,
  Lease,
  RowListener,
  StateSubscription,
  WindowCounters,
  Held,
  Holds,
} from './cluster-state.js';
import { StateUnavailableError } from './cluster-state.js';
import { ShortLivedMap } from '../short-lived-map.js';

/** The state of a cluster that is this process; counters and holds answer at once. */
export function embeddedState(clock: Clock): EmbeddedState {
  return new EmbeddedState(clock);
}

interface Row {
  /** As JSON: each reader gets a copy of its own. */
  text: string;
  /** Monotonic ms. */
  expiresMs: number;
}

/** What one name was used for: counters and holds that were asked for again are the same. */
export class EmbeddedState implements ClusterState {
  private readonly counters = new Map<string, EmbeddedCounters>();
  private readonly heldBy = new Map<string, EmbeddedHolds>();
  private readonly leases = new Map<string, { lease: Lease; expiresMs: number }>();
  private readonly tables = new Map<string, Map<string, Row>>();
  private readonly watchers = new Listeners<[string, JsonValue | undefined]>();
  private readonly subscribers = new Listeners<[JsonValue]>();
  private lastEpoch = 0;
  private closed = false;

  constructor(private readonly clock: Clock) {}

  windowCounters(name: string, windowMs: number): EmbeddedCounters {
    const key = `${windowMs} ${name}`;
    const known = this.counters.get(key);
    if (known !== undefined) return known;
    const created = new EmbeddedCounters(this.clock, windowMs);
    this.counters.set(key, created);
    return created;
  }

  holds(name: string): EmbeddedHolds {
    const known = this.heldBy.get(name);
    if (known !== undefined) return known;
    const created = new EmbeddedHolds(this.clock);
    this.heldBy.set(name, created);
    return created;
  }

  async acquireLease(name: string, holder: string, ttlMs: number): Promise<Lease | undefined> {
    this.checkOpen();
    const current = this.leaseNow(name);
    if (current !== undefined && current.holder !== holder) return undefined;
    // Beyond those of earlier processes of this name too, which took fewer than one a millisecond.
    this.lastEpoch = Math.max(this.lastEpoch + 1, this.clock.now());
    const lease = { name, holder, epoch: this.lastEpoch };
    this.leases.set(name, { lease, expiresMs: this.clock.monotonicMs() + ttlMs });
    return lease;
  }

  async renewLease(lease: Lease, ttlMs: number): Promise<boolean> {
    this.checkOpen();
    if (this.leaseNow(lease.name)?.epoch !== lease.epoch) return false;
    this.leases.set(lease.name, { lease, expiresMs: this.clock.monotonicMs() + ttlMs });
    return true;
  }

  async releaseLease(lease: Lease): Promise<void> {
    this.checkOpen();
    if (this.leaseNow(lease.name)?.epoch === lease.epoch) this.leases.delete(lease.name);
  }

  async currentLease(name: string): Promise<Lease | undefined> {
    this.checkOpen();
    return this.leaseNow(name);
  }

  async setRow(table: string, key: string, value: JsonValue, ttlMs = Infinity): Promise<void> {
    this.checkOpen();
    const rows = this.tables.get(table) ?? new Map<string, Row>();
    this.tables.set(table, rows);
    // One text for all readers: it costs half of what a clone for each does.
    const text = JSON.stringify(value);
    rows.set(key, { text, expiresMs: this.clock.monotonicMs() + ttlMs });
    this.watchers.tell(table, () => [key, JSON.parse(text) as JsonValue]);
  }

  async deleteRow(table: string, key: string): Promise<void> {
    this.checkOpen();
    if (this.tables.get(table)?.delete(key) === true) this.watchers.tell(table, () => [key, undefined]);
  }

  async rows(table: string): Promise<Map<string, JsonValue>> {
    this.checkOpen();
    const found = new Map<string, JsonValue>();
    const rows = this.tables.get(table);
    for (const [key, { text, expiresMs }] of rows ?? []) {
      if (expiresMs > this.clock.monotonicMs()) found.set(key, JSON.parse(text) as JsonValue);
      else rows?.delete(key);
    }
    return found;
  }

  async watch(table: string, listener: RowListener): Promise<StateSubscription> {
    this.checkOpen();
    return this.watchers.add(table, ([key, value]) => listener(key, value));
  }

  async publish(channel: string, message: JsonValue): Promise<void> {
    this.checkOpen();
    this.subscribers.tell(channel, () => [structuredClone(message)]);
  }

  async subscribe(channel: string, listener: (message: JsonValue) => void): Promise<StateSubscription> {
    this.checkOpen();
    return this.subscribers.add(channel, ([message]) => listener(message));
  }

  async close(): Promise<void> {
    this.closed = true;
  }

  private leaseNow(name: string): Lease | undefined {
    const found = this.leases.get(name);
    if (found === undefined || found.expiresMs > this.clock.monotonicMs()) return found?.lease;
    this.leases.delete(name);
    return undefined;
  }

  private checkOpen(): void {
    if (this.closed) throw new StateUnavailableError('the state is closed');
  }
}

class EmbeddedCounters implements WindowCounters {
  private window = -1;
  private readonly counts = new Map<string, number>();

  constructor(
    private readonly clock: Clock,
    private readonly windowMs: number,
  ) {}

  add(key: string, amount = 1): number {
    const window = Math.floor(this.clock.now() / this.windowMs);
    if (window !== this.window) {
      this.window = window;
      this.counts.clear();
    }
    const count = (this.counts.get(key) ?? 0) + amount;
    this.counts.set(key, count);
    return count;
  }
}

/** Those who listen, by what they listen to. */
class Listeners<News> {
  private readonly byTopic = new Map<string, Set<(news: News) => void>>();

  add(topic: string, listener: (news: News) => void): StateSubscription {
    const listeners = this.byTopic.get(topic) ?? new Set();
    this.byTopic.set(topic, listeners.add(listener));
    return {
      close: () => {
        listeners.delete(listener);
        if (listeners.size === 0 && this.byTopic.get(topic) === listeners) this.byTopic.delete(topic);
        return Promise.resolve();
      },
    };
  }

  /** `news` is made for each, so that none can change another's. */
  tell(topic: string, news: () => News): void {
    for (const listener of [...(this.byTopic.get(topic) ?? [])]) listener(news());
  }
}

/** The holders of one key. */
interface Holders {
  /** Tokens and when their time is over, monotonic ms. */
  expiries: ShortLivedMap<string, number>;
  /** No hold is over before this, monotonic ms. */
  noneOverBeforeMs: number;
}

/**
 * Holds in memory. Expired holds are removed by the next call for their key: holding and releasing cost the same
 * however many hold.
 */
class EmbeddedHolds implements Holds {
  private readonly keys = new ShortLivedMap<string, Holders>();

  constructor(private readonly clock: Clock) {}

  hold(key: string, token: string, ttlMs: number): number {
    const nowMs = this.clock.monotonicMs();
    const expiresMs = nowMs + ttlMs;
    let holders = this.keys.get(key);
    if (holders === undefined) {
      holders = { expiries: new ShortLivedMap(), noneOverBeforeMs: expiresMs };
      this.keys.set(key, holders);
    } else if (expiresMs < holders.noneOverBeforeMs) {
      holders.noneOverBeforeMs = expiresMs;
    }
    holders.expiries.set(token, expiresMs);
    this.forgetOver(holders, nowMs);
    return holders.expiries.size;
  }

  release(key: string, token: string): void {
    const holders = this.keys.get(key);
    if (holders?.expiries.delete(token) && holders.expiries.size === 0) this.keys.delete(key);
  }

  count(key: string): number {
    const holders = this.keys.get(key);
    if (holders === undefined) return 0;
    this.forgetOver(holders, this.clock.monotonicMs());
    if (holders.expiries.size === 0) this.keys.delete(key);
    return holders.expiries.size;
  }

  tokens(key: string): string[] {
    return this.count(key) === 0 ? [] : (this.keys.get(key)?.expiries.keys() ?? []);
  }

  all(): Held[] {
    const nowMs = this.clock.monotonicMs();
    return this.keys
      .keys()
      .filter((key) => this.count(key) > 0)
      .flatMap((key) =>
        (this.keys.get(key)?.expiries.entries() ?? []).map(([token, expiresMs]) => ({
          key,
          token,
          leftMs: expiresMs - nowMs,
        })),
      );
  }

  private forgetOver(holders: Holders, nowMs: number): void {
    if (nowMs < holders.noneOverBeforeMs) return;
    let earliestMs = Infinity;
    for (const [token, expiresMs] of holders.expiries.entries()) {
      if (expiresMs <= nowMs) holders.expiries.delete(token);
      else if (expiresMs < earliestMs) earliestMs = expiresMs;
    }
    holders.noneOverBeforeMs = earliestMs;
  }
}
