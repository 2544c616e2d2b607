// Indexes of the accounts that the ledger keeps up to date: sums by column, places by function, places by fullness.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- orders are indices of the accounts, and ranks of the places of a group */
import { groupedBy } from '@gpuwhisk/common/collections';
import type { PlaceAccount } from './account.js';

/** Sums of all places by their `order`, as arrays of numbers: a scan of them reads no object. */
export interface AccountColumns {
  load: Float64Array;
  freeMiB: Float64Array;
  availableMiB: Float64Array;
  /** Thousandths of the SMs. */
  requestSum: Float64Array;
  limitSum: Float64Array;
  /** How often each place has been counted: what was computed of it holds while this stays. */
  counts: Uint32Array;
}

/** The columns of accounts that have their `order`. */
export function columnsOf(accounts: readonly PlaceAccount[]): AccountColumns {
  const column = (): Float64Array => new Float64Array(accounts.length);
  const counts = new Uint32Array(accounts.length);
  const columns = {
    ...{ load: column(), freeMiB: column(), availableMiB: column() },
    ...{ requestSum: column(), limitSum: column(), counts },
  };
  for (const account of accounts) writeColumns(columns, account);
  return columns;
}

/** Sets the row of one account. */
export function writeColumns(columns: AccountColumns, account: PlaceAccount): void {
  const { order } = account;
  columns.load[order] = account.load;
  columns.freeMiB[order] = account.freeMiB;
  columns.availableMiB[order] = account.availableMiB;
  columns.requestSum[order] = account.requestSum;
  columns.limitSum[order] = account.limitSum;
  columns.counts[order]! += 1;
}

/** Places by function key. */
export type FunctionIndex = Map<string, Set<PlaceAccount>>;

/** Has an index name a place under `keys`, which it named under `known`. */
export function reindex(
  index: FunctionIndex,
  account: PlaceAccount,
  known: readonly string[],
  keys: readonly string[],
): void {
  for (const key of known) {
    if (keys.includes(key)) continue;
    const places = index.get(key);
    places?.delete(account);
    if (places?.size === 0) index.delete(key);
  }
  for (const key of keys) {
    if (known.includes(key)) continue;
    const places = index.get(key);
    if (places === undefined) index.set(key, new Set([account]));
    else places.add(account);
  }
}

/** Places of one capacity, by how full they are. */
interface Group {
  capacityMiB: number;
  /** `order` of the accounts, those in use first, the fullest first; of equally full ones the first. */
  ranked: Int32Array;
}

/** A sum of requests in thousandths of the SMs, and memory that is not free, MiB. */
interface Fill {
  requestSum: number;
  usedMiB: number;
}

/**
 * How full a place is: the mean of the parts of its SMs and of its memory that are given away (Dilu, algorithm 1, line 25,
 * with α = β = 0.5), times 2000 times its capacity. It is an integer, so that ties are ties.
 */
export function fullness({ requestSum, usedMiB }: Fill, capacityMiB: number): number {
  return requestSum * capacityMiB + usedMiB * 1000;
}

/** Memory of a place that is not free, idle instances included, MiB. */
export function usedMiB({ capacityMiB, freeMiB }: Pick<PlaceAccount, 'capacityMiB' | 'freeMiB'>): number {
  return capacityMiB - freeMiB;
}

/** Whether a place has an instance of a function, an idle one included (Dilu, algorithm 1: an active GPU). */
export function isInUse({ limitSum }: Pick<PlaceAccount, 'limitSum'>): boolean {
  return limitSum > 0;
}

/** Times its capacity, it puts a place in use before every other one: no fullness comes near it. */
const inUseFirst = 1e6;

/**
 * All places by how full they are, for best fit; those in use before all others. Among places of one capacity the fullest one
 * that fits is also the fullest one afterwards, so that places of each capacity are ranked by themselves.
 */
export class FullestFirst {
  private readonly groups = new Map<number, Group>();
  /** The rank key of each place, by its `order`. */
  private readonly keys: Float64Array;

  /** `accounts` by their `order`. Their capacities must stay as they are. */
  constructor(private readonly accounts: readonly PlaceAccount[]) {
    this.keys = Float64Array.from(accounts, keyOf);
    for (const [capacityMiB, alike] of groupedBy(accounts, (account) => account.capacityMiB)) {
      const ranked = Int32Array.from(alike, ({ order }) => order).sort((one, other) =>
        this.isBefore(one, other) ? -1 : 1,
      );
      this.groups.set(capacityMiB, { capacityMiB, ranked });
    }
  }

  /** The sums of a place have changed. */
  changed(account: PlaceAccount): void {
    const { order, capacityMiB } = account;
    const key = keyOf(account);
    const known = this.keys[order]!;
    if (key === known) return;
    const { ranked } = this.groups.get(capacityMiB)!;
    const from = this.rankOf(ranked, order, 0, ranked.length);
    this.keys[order] = key;
    if (key > known) {
      const to = this.rankOf(ranked, order, 0, from);
      ranked.copyWithin(to + 1, to, from);
      ranked[to] = order;
    } else {
      const to = this.rankOf(ranked, order, from + 1, ranked.length) - 1;
      ranked.copyWithin(from, from + 1, to + 1);
      ranked[to] = order;
    }
  }

  /**
   * The first place of each capacity that `accepts` takes, without those in use that are filled by more than `most` gives for
   * that capacity. A capacity without such a place is left out.
   */
  find(most: (capacityMiB: number) => Fill, accepts: (account: PlaceAccount) => boolean): PlaceAccount[] {
    const found: PlaceAccount[] = [];
    for (const { capacityMiB, ranked } of this.groups.values()) {
      const bound = fullness(most(capacityMiB), capacityMiB) + inUseFirst * capacityMiB;
      for (let rank = this.firstUpTo(ranked, bound); rank < ranked.length; rank += 1) {
        const account = this.accounts[ranked[rank]!]!;
        if (!accepts(account)) continue;
        found.push(account);
        break;
      }
    }
    return found;
  }

  private isBefore(one: number, other: number): boolean {
    const [key, otherKey] = [this.keys[one]!, this.keys[other]!];
    return key > otherKey || (key === otherKey && one < other);
  }

  /** The first rank from `low` to `high` whose place is not before place `order`. */
  private rankOf(ranked: Int32Array, order: number, low: number, high: number): number {
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.isBefore(ranked[middle]!, order)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first rank of a place whose fullness is `bound` at most. */
  private firstUpTo(ranked: Int32Array, bound: number): number {
    let [low, high] = [0, ranked.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.keys[ranked[middle]!]! > bound) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function keyOf(account: PlaceAccount): number {
  const { requestSum, capacityMiB } = account;
  const filled = fullness({ requestSum, usedMiB: usedMiB(account) }, capacityMiB);
  return isInUse(account) ? filled + inUseFirst * capacityMiB : filled;
}
