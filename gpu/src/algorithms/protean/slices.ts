// The slices of a ledger as PROTEAN's placement compares them: arrays by the `order` of their accounts.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- orders are those of the ledger's accounts, and kinds those of its places */
import type { GpuKind } from '@gpuwhisk/common/gpu';
import { knownKind } from './slowdowns.js';
import type { KnownKind, SliceSlowdowns, TaskFigures } from './slowdowns.js';
import type { AccountColumns } from '../../ledger/account-index.js';
import type { PlaceAccount } from '../../ledger/account.js';
import type { Ledger } from '../../ledger/ledger.js';
import { gpuTypeOf } from '../../ledger/places.js';
import type { Place } from '../../ledger/places.js';

/** What is known of a task on each kind of place, by its index among `Slices.kinds`. */
export interface TaskOnKinds {
  /** Times alone, ms or relative (`isTimed`). */
  times: readonly number[];
  isTimed: boolean;
  /** The least of `times`: slowdowns are relative to it. */
  leastTime: number;
  /** Its requirement of bandwidth; NaN where requirements are not used. */
  bandwidths: readonly number[];
  /** The slowdown beside others where they are not. */
  constants: readonly number[];
}

/** Functions with an SLO that are noted, and functions of which times on kinds of places are kept. */
const [mostStrict, mostKept] = [1000, 1000];

/** Figures of a function with an SLO. */
type StrictFigures = TaskFigures & { sloMs: number };

/** The functions with an SLO by name, the last ones that were noted; they outlast the ledger whose runs they judge. */
export class StrictFunctions {
  /** Grows when all are replaced. */
  revision = 0;
  private byName = new Map<string, StrictFigures>();

  get size(): number {
    return this.byName.size;
  }

  /** Notes the SLO of a task's function, or that it has none. */
  note(task: TaskFigures & { sloMs?: number }): void {
    const { byName } = this;
    const { function: name, sloMs, soloMs, features } = task;
    const known = byName.get(name);
    if (known?.sloMs === sloMs && known?.soloMs === soloMs) return;
    if (sloMs === undefined) {
      byName.delete(name);
      return;
    }
    byName.set(name, { function: name, sloMs, ...(soloMs !== undefined && { soloMs }), ...(features && { features }) });
    const [oldest] = byName.keys();
    if (byName.size > mostStrict && oldest !== undefined) byName.delete(oldest);
  }

  /** The figures of a function; undefined: it has no SLO, or was not noted. */
  of(name: string): StrictFigures | undefined {
    return this.byName.get(name);
  }

  /** The state, for `restore`. */
  saved(): StrictFigures[] {
    return [...this.byName.values()];
  }

  /** Takes the state of another one. */
  restore(figures: readonly StrictFigures[]): void {
    this.byName = new Map(figures.map((one) => [one.function, one]));
    this.revision += 1;
  }
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
  /** The sum up to which strict runs on each place take at most the wanted part of their SLO; Infinity: there are none. */
  mostBandwidth = new Float64Array(0);
  /** As they were when places were put in ascending order, MiB. */
  private capacities = new Float64Array(0);
  private counts = new Uint32Array(0);
  private revision = -1;
  private strictRevision = -1;
  /** The places that `kindAt` was told of. */
  private placeAt: (Place | undefined)[] = [];
  /** Answers of `onKinds` by function, with the figures that they were made of; they hold for what was learned up to then. */
  private readonly kept = new Map<
    string,
    { soloMs: number | undefined; fill: number | undefined; onKinds: TaskOnKinds }
  >();
  private keptAt = { learned: -1, kinds: 0 };

  constructor(
    private readonly ledger: Ledger,
    private readonly slowdowns: SliceSlowdowns,
    private readonly strict: StrictFunctions,
    /** Part of their SLO that strict runs may take with best effort beside them; 0: any. */
    private readonly strictPart: number,
  ) {
    this.sums = ledger.sums();
  }

  /** Takes over what has changed in the ledger, and what was learned. */
  refresh(): void {
    const { ledger, slowdowns, strict } = this;
    const accounts = ledger.accounts();
    this.sums = ledger.sums();
    const { revision } = slowdowns;
    const isKnown = this.revision === revision && this.strictRevision === strict.revision;
    const isAnew = this.accounts !== accounts || !isKnown;
    this.revision = revision;
    this.strictRevision = strict.revision;
    if (this.accounts !== accounts) {
      this.accounts = accounts;
      this.kindAt = new Int32Array(accounts.length);
      this.bandwidth = new Float64Array(accounts.length);
      this.mostBandwidth = new Float64Array(accounts.length);
      this.counts = new Uint32Array(accounts.length);
      this.placeAt = [];
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
    const { kinds, slowdowns, kept, keptAt } = this;
    if (keptAt.learned !== slowdowns.learned || keptAt.kinds !== kinds.length || kept.size >= mostKept) {
      kept.clear();
      this.keptAt = { learned: slowdowns.learned, kinds: kinds.length };
    }
    const { function: name, soloMs, features } = task;
    const known = kept.get(name);
    if (known !== undefined && known.soloMs === soloMs && known.fill === features?.smUtil) return known.onKinds;
    const onKinds = this.countOnKinds(task);
    kept.set(name, { soloMs, fill: features?.smUtil, onKinds });
    return onKinds;
  }

  private countOnKinds(task: TaskFigures): TaskOnKinds {
    const { kinds, slowdowns } = this;
    const { times, isTimed } = slowdowns.aloneOn(task, kinds);
    const bandwidths: number[] = [];
    const constants: number[] = [];
    for (const kind of kinds) {
      const family = slowdowns.bandwidthsOf(kind);
      bandwidths.push(family?.isProven === true ? family.of(task.function) : NaN);
      constants.push(family?.constant ?? 1);
    }
    let leastTime = Infinity;
    for (const time of times) leastTime = Math.min(leastTime, time);
    return { times, isTimed, leastTime, bandwidths, constants };
  }

  /** The sum of requirements at which a function takes the wanted part of its SLO on a kind of place (equation 2). */
  private bandwidthFor(name: string, kind: number): number {
    const figures = this.strict.of(name);
    if (figures === undefined) return Infinity;
    const { times, isTimed } = this.onKinds(figures);
    return isTimed ? (this.strictPart * figures.sloMs) / times[kind]! : Infinity;
  }

  /** Counts the requirements on a place; true if its rank among the places may be another. */
  private recount(account: PlaceAccount): boolean {
    const { order, occupants } = account;
    const isSame = this.placeAt[order] === account.place || this.isOfSameKind(account);
    const kind = this.kindAt[order]!;
    const family = this.slowdowns.bandwidthsOf(this.kinds[kind]!);
    let sum = 0;
    let most = Infinity;
    if (family !== undefined) {
      const asksSlos = this.strictPart > 0 && this.strict.size > 0;
      let last: string | undefined;
      for (const { users, action } of occupants) {
        if (users === 0 || action === undefined) continue;
        sum += family.of(action);
        if (asksSlos && action !== last) most = Math.min(most, this.bandwidthFor(action, kind));
        last = action;
      }
    }
    this.bandwidth[order] = sum;
    this.mostBandwidth[order] = most;
    return !isSame || this.capacities[order] !== account.capacityMiB;
  }

  /** Whether a place is still of the kind that it was of; notes its present kind. */
  private isOfSameKind({ order, mode, place }: PlaceAccount): boolean {
    this.placeAt[order] = place;
    const gpuType = gpuTypeOf(place.device, place.slice);
    const known = this.kinds[this.kindAt[order]!];
    if (known?.gpuType === gpuType && known.mode === mode) return true;
    this.kindAt[order] = this.kindIndex({ gpuType, mode });
    return false;
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

  private kindIndex(kind: GpuKind): number {
    const found = this.kinds.findIndex(({ gpuType, mode }) => gpuType === kind.gpuType && mode === kind.mode);
    return found < 0 ? this.kinds.push(knownKind(kind)) - 1 : found;
  }
}
