// The slices of a ledger as PROTEAN's placement compares them: arrays by the `order` of their accounts.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- orders are those of the ledger's accounts, and kinds those of its places */
import { knownKind } from '../predict/protean-slowdowns.js';
import type { KnownKind, PlaceKind, SliceSlowdowns, TaskFigures } from '../predict/protean-slowdowns.js';
import type { AccountColumns } from '../view/account-index.js';
import type { PlaceAccount } from '../view/account.js';
import type { Ledger } from '../view/ledger.js';
import { gpuTypeOf } from '../view/places.js';

/** What is known of a task on each kind of place, by its index among `Slices.kinds`. */
export interface TaskOnKinds {
  /** Times alone, ms or relative (`isTimed`). */
  times: Float64Array;
  isTimed: boolean;
  /** The least of `times`: slowdowns are relative to it. */
  leastTime: number;
  /** Its requirement of bandwidth; NaN where requirements are not used. */
  bandwidths: Float64Array;
  /** The slowdown beside others where they are not. */
  constants: Float64Array;
}

/** The places of one ledger, whether whole GPUs or slices; kept up to date from pass to pass. */
export class Slices {
  accounts: readonly PlaceAccount[] = [];
  sums: AccountColumns;
  /** Orders of the places, those with the least memory first, of equal ones those with the fewest SMs. */
  ascending = new Int32Array(0);
  kinds: KnownKind[] = [];
  /** Index of the kind of each place. */
  kindAt = new Int32Array(0);
  /** Sum of the requirements of what runs on each place. */
  bandwidth = new Float64Array(0);
  /** As they were when places were put in ascending order, MiB. */
  private capacities = new Float64Array(0);
  private counts = new Uint32Array(0);
  private revision = -1;

  constructor(
    private readonly ledger: Ledger,
    private readonly slowdowns: SliceSlowdowns,
  ) {
    this.sums = ledger.sums();
  }

  /** Takes over what has changed in the ledger, and what was learned. */
  refresh(): void {
    const { ledger, slowdowns } = this;
    const accounts = ledger.accounts();
    this.sums = ledger.sums();
    const { revision } = slowdowns;
    const isAnew = this.accounts !== accounts || this.revision !== revision;
    this.revision = revision;
    if (this.accounts !== accounts) {
      this.accounts = accounts;
      this.kindAt = new Int32Array(accounts.length);
      this.bandwidth = new Float64Array(accounts.length);
      this.counts = new Uint32Array(accounts.length);
    }
    let isOther = false;
    for (let order = 0; order < accounts.length; order += 1) {
      const count = this.sums.counts[order]!;
      if (!isAnew && this.counts[order] === count) continue;
      this.counts[order] = count;
      isOther = this.recount(accounts[order]!) || isOther;
    }
    if (isOther || this.ascending.length !== accounts.length) this.sort();
  }

  /** What is known of a task on each kind of place. */
  onKinds(task: TaskFigures): TaskOnKinds {
    const { kinds, slowdowns } = this;
    const { times, isTimed } = slowdowns.aloneOn(task, kinds);
    const bandwidths = new Float64Array(kinds.length);
    const constants = new Float64Array(kinds.length);
    let leastTime = Infinity;
    for (const [at, kind] of kinds.entries()) {
      const family = slowdowns.bandwidthsOn(kind);
      bandwidths[at] = family?.isProven === true ? family.of(task.function) : NaN;
      constants[at] = family?.constant ?? 1;
      leastTime = Math.min(leastTime, times[at]!);
    }
    return { times, isTimed, leastTime, bandwidths, constants };
  }

  /** Counts the requirements on a place; true if its rank among the places may be another. */
  private recount(account: PlaceAccount): boolean {
    const { order, mode, place, occupants } = account;
    const type = gpuTypeOf(place.device, place.slice);
    const known = this.kinds[this.kindAt[order]!];
    const isSame = known?.type === type && known.mode === mode;
    if (!isSame) this.kindAt[order] = this.kindIndex({ type, mode });
    const family = this.slowdowns.bandwidthsOn({ type, mode });
    let sum = 0;
    if (family !== undefined) {
      for (const { users, action } of occupants) if (users > 0 && action !== undefined) sum += family.of(action);
    }
    this.bandwidth[order] = sum;
    return !isSame || this.capacities[order] !== account.capacityMiB;
  }

  private sort(): void {
    const { accounts } = this;
    this.capacities = Float64Array.from(accounts, ({ capacityMiB }) => capacityMiB);
    const smsOf = ({ place }: PlaceAccount): number => place.slice?.smCount ?? place.device.smCount;
    this.ascending = Int32Array.from(accounts.keys()).sort((one, other) => {
      const [a, b] = [accounts[one]!, accounts[other]!];
      return a.capacityMiB - b.capacityMiB || smsOf(a) - smsOf(b) || one - other;
    });
  }

  private kindIndex({ type, mode }: PlaceKind): number {
    const found = this.kinds.findIndex((one) => one.type === type && one.mode === mode);
    return found < 0 ? this.kinds.push(knownKind({ type, mode })) - 1 : found;
  }
}
