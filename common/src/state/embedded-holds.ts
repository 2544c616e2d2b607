import { ShortLivedMap } from '../short-lived-map.js';
import type { Clock } from '../system/clock.js';
import type { Held, Holds } from './cluster-state.js';

/** The holders of one key. */
interface Holders {
  /** Tokens and when their time is over, monotonic ms. */
  expiries: ShortLivedMap<string, number>;
  /** No hold is over before this, monotonic ms. */
  noneOverBeforeMs: number;
}

/**
 * Holds in memory. What is over is removed when somebody asks after it is: holding and releasing cost the same
 * however many hold.
 */
export class EmbeddedHolds implements Holds {
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
          ...{ key, token },
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
