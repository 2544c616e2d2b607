// Time that namespaces use for their live streams.
import { othersFirst } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';

/** A namespace rests for so many times the time that its looks took. */
const restFactor = 4;
/** Longest rest, ms. */
const longestRestMs = 30_000;

interface Account {
  /** Resolves when the looks that were taken so far are done. */
  last: Promise<unknown>;
  waiting: number;
  /** Time of looks since the last rest, ms. */
  usedMs: number;
  /** On the monotonic clock. */
  restsUntilMs: number;
}

/**
 * Accounts of the time that the looks of each namespace take. A namespace has one look at a time, and after its looks it rests
 * four times as long as they took, 30 s at most. Of all namespaces one look begins in a turn of the event loop. Looks that take a fifth of a second together are repeated each second.
 */
export class LookAccounts {
  private readonly accounts = new Map<string, Account>();
  /** Resolves when the next look of any namespace may begin. */
  private turn: Promise<void> = Promise.resolve();

  constructor(private readonly clock: Pick<Clock, 'monotonicMs' | 'defer'>) {}

  /** Whether a namespace has looks to pay for. */
  rests(namespace: string): boolean {
    const account = this.accounts.get(namespace);
    return account !== undefined && account.waiting === 0 && this.clock.monotonicMs() < account.restsUntilMs;
  }

  /** Does `look`, which must not reject, after those of the same namespace that were taken before. */
  take<Found>(namespace: string, look: () => Promise<Found>): Promise<Found> {
    const nowMs = this.clock.monotonicMs();
    for (const [other, { waiting, restsUntilMs }] of this.accounts) {
      if (waiting === 0 && restsUntilMs <= nowMs) this.accounts.delete(other);
    }
    const account = this.accounts.get(namespace) ?? { last: Promise.resolve(), waiting: 0, usedMs: 0, restsUntilMs: 0 };
    this.accounts.set(namespace, account);
    account.waiting += 1;
    const found = account.last.then(() => this.measured(account, look));
    account.last = found;
    return found;
  }

  private async measured<Found>(account: Account, look: () => Promise<Found>): Promise<Found> {
    // Looks of many namespaces are due at the same time, and those at short lists never wait for anything.
    this.turn = this.turn.then(() => othersFirst(this.clock));
    await this.turn;
    const startedMs = this.clock.monotonicMs();
    try {
      return await look();
    } finally {
      const nowMs = this.clock.monotonicMs();
      account.waiting -= 1;
      account.usedMs += nowMs - startedMs;
      if (account.waiting === 0) {
        account.restsUntilMs = nowMs + Math.min(longestRestMs, restFactor * account.usedMs);
        account.usedMs = 0;
      }
    }
  }
}
