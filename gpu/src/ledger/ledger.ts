// The ledger of places and reservations, and the bounds of one pass on it.
import type { NodeStatus, Placement, Resident } from '@gpuwhisk/common/gpu';
import { columnsOf, reindex, writeColumns, FullestFirst } from './account-index.js';
import type { AccountColumns, FunctionIndex } from './account-index.js';
import { emptyAccount } from './account.js';
import type { PlaceAccount } from './account.js';
import { NodeIndex } from './node-index.js';
import {
  areSame,
  functionKey,
  isOfOthers,
  isShownAs,
  occupantsOf,
  othersMiB,
  placeIdsOf,
  residentsByPlace,
  shownAs,
  shownIn,
  standingOf,
} from './occupancy.js';
import type { Occupant, Reservation, ShownOccupant, Standing } from './occupancy.js';
import { LedgerMisuseError, PassBudget } from './pass-budget.js';
import type { PassTasks } from './pass-budget.js';
import { clientLimitOf, placeId, placesOf } from './places.js';
import type { Place } from './places.js';

export type { PlaceAccount } from './account.js';

interface Entry {
  account: PlaceAccount;
  shown: readonly ShownOccupant[];
  /** Memory of processes that are not the platform's, as they say, MiB. */
  othersMiB: number;
  /** Memory in use as the agent tells of a whole device, MiB; 0 for a slice. */
  usedMiB: number;
  /** Reservations that are on it. */
  here: Standing[];
  /** Functions with an instance there, and with one that idles, as the indexes have them. */
  functions: readonly string[];
  idle: readonly string[];
  /** In which of `byLoad` it is; -1: in none, as it has not been counted yet. */
  bucket: number;
}

interface Held {
  reservation: Reservation;
  /** When its run should have ended at the latest, monotonic ms. */
  lostMs: number;
}

interface Node {
  row: NodeStatus;
  /** When it came, monotonic ms. */
  seenMs: number;
  entries: Entry[];
}

/** Parts of the SMs that places are told apart by, for the first fit; the last one has all that are given away whole. */
const loadBuckets = 20;

const noPlaces: ReadonlySet<PlaceAccount> = new Set();

/** Period of the search for runs whose end was not reported, ms. */
const sweepMs = 1000;

/**
 * The accounts of all places of the cluster: the instances that agents report, and the placements that were given out and
 * are not reported yet. Changes update single places, so that no change costs work proportional to the cluster.
 */
export class Ledger {
  private readonly nodes = new Map<string, Node>();
  private readonly entries = new Map<string, Entry>();
  private readonly held = new Map<string, Held>();
  private readonly byFunction: FunctionIndex = new Map();
  private readonly byIdleFunction: FunctionIndex = new Map();
  /** Absent: to be put in order again. */
  private ordered: PlaceAccount[] | undefined;
  private columns: AccountColumns = columnsOf([]);
  /** Absent: to be made, if a policy asks for it. */
  private fullest: FullestFirst | undefined;
  private byNode: NodeIndex | undefined;
  private sweptMs = -Infinity;
  private pass: PassBudget | undefined;
  /** Accounts by load, the least first, in no particular order each. */
  readonly byLoad: readonly ReadonlySet<PlaceAccount>[] = Array.from({ length: loadBuckets + 1 }, () => new Set());

  /** A ledger with the same accounts as the one that `rows`, `reservations` and `byLoadIds` were read from. */
  static of(rows: readonly NodeStatus[], held: readonly Reservation[], byLoadIds: readonly string[]): Ledger {
    const ledger = new Ledger();
    for (const row of rows) ledger.heard(row, 0);
    for (const reservation of held) ledger.hold(reservation, Infinity);
    for (const id of byLoadIds) {
      const entry = ledger.entries.get(id);
      if (entry === undefined) continue;
      const { bucket } = entry;
      ledger.sort(entry, -1);
      ledger.sort(entry, bucket);
    }
    return ledger;
  }

  /**
   * Begins a pass of a policy: until `endPass`, the ledger throws LedgerMisuseError after `mostCalls` calls, and for every
   * change but holds and releases of activations that are in `tasks` or that nothing was given out to before.
   */
  beginPass(mostCalls: number, tasks: PassTasks): void {
    this.pass = new PassBudget(mostCalls, tasks);
  }

  /** Ends a pass. Gives the activations that it has placed and not released. */
  endPass(): ReadonlySet<string> {
    const held = this.pass?.held ?? new Set<string>();
    this.pass = undefined;
    return held;
  }

  /** The accounts of all places, by the names of nodes and the order of their devices. */
  accounts(): readonly PlaceAccount[] {
    this.count();
    return this.inOrder();
  }

  private inOrder(): readonly PlaceAccount[] {
    if (this.ordered === undefined) {
      const nodes = [...this.nodes].sort(([one], [other]) => (one < other ? -1 : 1));
      this.ordered = nodes.flatMap(([, { entries }]) => entries.map(({ account }) => account));
      for (const [order, account] of this.ordered.entries()) account.order = order;
      this.columns = columnsOf(this.ordered);
      this.fullest = undefined;
      this.byNode = undefined;
    }
    return this.ordered;
  }

  /** The sums of `accounts()`. */
  sums(): AccountColumns {
    this.count();
    if (this.ordered === undefined) this.inOrder();
    return this.columns;
  }

  /** All places by how full they are; kept up to date from the first call on, until nodes come or go. */
  fullestFirst(): FullestFirst {
    const accounts = this.accounts();
    return (this.fullest ??= new FullestFirst(accounts));
  }

  /** All nodes, by their names; kept up to date from the first call on, until nodes come or go. */
  nodeIndex(): NodeIndex {
    const accounts = this.accounts();
    return (this.byNode ??= new NodeIndex(accounts));
  }

  /** The account of a place; undefined if it is not known. */
  account(id: string): PlaceAccount | undefined {
    this.count();
    return this.entries.get(id)?.account;
  }

  /** The accounts of places that have an instance of a function, in no particular order; `idle`: one that idles. */
  withInstances(work: { action: string; namespace: string }, idle: boolean): ReadonlySet<PlaceAccount> {
    this.count();
    return (idle ? this.byIdleFunction : this.byFunction).get(functionKey(work)) ?? noPlaces;
  }

  /** When the newest row of a node came, monotonic ms; -Infinity if there is none. */
  seenMs(invoker: string): number {
    return this.nodes.get(invoker)?.seenMs ?? -Infinity;
  }

  /** The rows of all nodes, by their names. */
  rows(): NodeStatus[] {
    this.count();
    const rows = Array.from(this.nodes.values(), ({ row }) => row);
    return rows.sort((one, other) => (one.invoker < other.invoker ? -1 : 1));
  }

  /**
   * Takes a node's row (`nowMs`: monotonic). Gives the activations that should have ended by now and have not; their
   * placements are released.
   */
  heard(row: NodeStatus, nowMs: number): string[] {
    this.refuseInPass('takes no rows');
    const { invoker } = row;
    const known = this.nodes.get(invoker);
    const places = placesOf([row]);
    const isSame =
      known?.entries.length === places.length &&
      // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- there are as many entries as places
      known.entries.every(({ account }, at) => account.id === placeId(places[at]!));
    if (!isSame) {
      this.forget(invoker);
      this.ordered = undefined;
    }
    const entries = isSame ? known.entries : places.map((place) => this.open(place));
    this.nodes.set(invoker, { row, seenMs: nowMs, entries });
    const residents = residentsByPlace(row);
    // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- entries has one for each place
    for (const [at, entry] of entries.entries()) this.told(entry, places[at]!, residents.get(entry.account.id) ?? []);
    return this.sweep(nowMs);
  }

  /** Forgets a node that is gone or silent; placements that were given out there stay. */
  silent(invoker: string): void {
    this.refuseInPass('forgets no nodes');
    if (!this.nodes.has(invoker)) return;
    this.forget(invoker);
    this.nodes.delete(invoker);
    this.ordered = undefined;
  }

  /**
   * Holds a placement; `lostMs`: when its run will have ended at the latest, monotonic ms. A placement that is held already
   * is held until then.
   */
  hold(reservation: Reservation, lostMs: number): void {
    this.count();
    this.checkChange(reservation.activationId);
    this.pass?.held.add(reservation.activationId);
    const known = this.held.get(reservation.activationId);
    if (known?.reservation.placement === reservation.placement) {
      known.lostMs = lostMs;
      return;
    }
    if (known !== undefined) this.remove(reservation.activationId);
    this.held.set(reservation.activationId, { reservation, lostMs });
    for (const id of placeIdsOf(reservation.placement)) {
      const entry = this.entries.get(id);
      if (entry === undefined) continue;
      entry.here.push(standingOf(entry.shown, reservation, id));
      this.sum(entry);
    }
  }

  /** Marks the run of an activation as ended. */
  end(activationId: string): void {
    this.refuseInPass('ends no runs');
    const reservation = this.held.get(activationId)?.reservation;
    if (reservation === undefined) return;
    reservation.ended = true;
    for (const id of placeIdsOf(reservation.placement)) {
      const entry = this.entries.get(id);
      if (entry !== undefined) this.sum(entry);
    }
  }

  /** Releases a placement whose run never began, or does not count any more. */
  release(activationId: string): void {
    this.count();
    this.checkChange(activationId);
    this.pass?.held.delete(activationId);
    this.remove(activationId);
  }

  private remove(activationId: string): void {
    const reservation = this.held.get(activationId)?.reservation;
    if (reservation === undefined) return;
    this.held.delete(activationId);
    for (const id of placeIdsOf(reservation.placement)) {
      const entry = this.entries.get(id);
      if (entry === undefined) continue;
      entry.here = entry.here.filter((one) => one.reservation !== reservation);
      this.sum(entry);
    }
  }

  /** Where an activation that has not ended was sent. */
  placementOf(activationId: string): Placement | undefined {
    this.count();
    const reservation = this.held.get(activationId)?.reservation;
    return reservation?.ended === false ? reservation.placement : undefined;
  }

  /** Reservations of activations that have not ended, the oldest first. */
  unended(): Reservation[] {
    this.count();
    return Array.from(this.held.values(), ({ reservation }) => reservation).filter(({ ended }) => !ended);
  }

  /** All reservations that are not settled, the oldest first; some of them have ended. */
  reservations(): Reservation[] {
    this.count();
    return Array.from(this.held.values(), ({ reservation }) => reservation);
  }

  /** Ids of the places in the order of `byLoad`, in which a first fit tries them. */
  byLoadIds(): string[] {
    return this.byLoad.flatMap((accounts) => Array.from(accounts, ({ id }) => id));
  }

  /** The reservations on a place. */
  heldOn(id: string): Iterable<Reservation> {
    this.count();
    return this.entries.get(id)?.here.map(({ reservation }) => reservation) ?? [];
  }

  private count(): void {
    this.pass?.count();
  }

  private refuseInPass(what: string): void {
    if (this.pass !== undefined) throw new LedgerMisuseError(`the ledger ${what} for a policy`);
  }

  private checkChange(activationId: string): void {
    if (this.pass === undefined || this.pass.mayChange(activationId)) return;
    if (this.held.has(activationId)) {
      throw new LedgerMisuseError(`a policy changed the reservation of '${activationId}', which does not wait`);
    }
  }

  private forget(invoker: string): void {
    for (const entry of this.nodes.get(invoker)?.entries ?? []) {
      this.index(entry, [], []);
      this.sort(entry, -1);
      this.entries.delete(entry.account.id);
    }
  }

  private open(place: Place): Entry {
    const id = placeId(place);
    const account = emptyAccount(place);
    const there = Array.from(this.held.values(), ({ reservation }) => reservation).filter(
      ({ placement }) => placement.invoker === place.node.invoker && placeIdsOf(placement).includes(id),
    );
    const here = there.map((reservation) => standingOf([], reservation, id));
    const entry: Entry = {
      account,
      shown: [],
      othersMiB: 0,
      usedMiB: 0,
      here,
      functions: [],
      idle: [],
      bucket: -1,
    };
    this.entries.set(id, entry);
    return entry;
  }

  /** Takes over what a row tells of a place, and counts the place again if the row tells something new. */
  private told(entry: Entry, place: Place, residents: readonly Resident[]): void {
    const { account } = entry;
    const { status, slice, capacityMiB } = place;
    const others = othersMiB(place);
    // Agents report memory in use for whole devices only.
    const usedMiB = slice === undefined ? (status?.usedMemoryMiB ?? 0) : 0;
    const isNews = !isShownAs(entry.shown, residents);
    const isSameMemory = entry.othersMiB === others && entry.usedMiB === usedMiB && account.capacityMiB === capacityMiB;
    const isSameMode = account.mode === place.device.mode;
    account.place = place;
    account.mode = place.device.mode;
    account.clientLimit = clientLimitOf(place);
    account.health = status?.health;
    account.workloads = 0;
    for (const one of status?.processes ?? []) if (isOfOthers(one, slice)) account.workloads += 1;
    // The indexes tell places apart by these.
    if (account.capacityMiB !== capacityMiB) this.fullest = undefined;
    if (account.capacityMiB !== capacityMiB || !isSameMode) this.byNode = undefined;
    account.capacityMiB = capacityMiB;
    entry.othersMiB = others;
    entry.usedMiB = usedMiB;
    if (isNews) entry.shown = shownAs(residents);
    const isSettled = this.settle(entry, isNews);
    if (isNews || isSettled || !isSameMemory || !isSameMode || entry.bucket < 0) this.sum(entry);
  }

  /** Ends reservations on a place that are over, and has the others name their container; false if nothing changed. */
  private settle(entry: Entry, isNews: boolean): boolean {
    const { here, shown } = entry;
    if (here.length === 0) return false;
    let isChanged = false;
    const left: Standing[] = [];
    for (const standing of here) {
      const { reservation } = standing;
      const { activationId, ended, reuses } = reservation;
      const there = shownIn(shown, activationId);
      if (ended && there === undefined) {
        this.held.delete(activationId);
        isChanged = true;
        continue;
      }
      const container = reuses === undefined ? undefined : shownIn(shown, reuses)?.occupant.id;
      if (container !== undefined && container !== reuses) {
        reservation.reuses = container;
        isChanged = true;
      }
      left.push(isNews ? { ...standing, shown: there?.occupant, promised: undefined } : standing);
    }
    entry.here = left;
    return isChanged;
  }

  /** Ends the runs of all nodes that should have ended long ago. Gives those whose end was not reported. */
  private sweep(nowMs: number): string[] {
    if (nowMs - this.sweptMs < sweepMs) return [];
    this.sweptMs = nowMs;
    const over = [...this.held.values()].filter(({ lostMs }) => lostMs <= nowMs);
    for (const { reservation } of over) this.remove(reservation.activationId);
    return over.filter(({ reservation }) => !reservation.ended).map(({ reservation }) => reservation.activationId);
  }

  /** Counts the sums of a place and puts it into the indexes. */
  private sum(entry: Entry): void {
    const { account, shown, here } = entry;
    const { slice, capacityMiB } = account.place;
    const { occupants, goingMiB } = occupantsOf(shown, here);
    const staying: Occupant[] = [];
    const functions: string[] = [];
    const idle: string[] = [];
    let heldMiB = 0;
    let stayingMiB = 0;
    let busy = 0;
    let running = 0;
    let [requestSum, limitSum, classSum] = [0, 0, 0];
    for (const one of occupants) {
      const { users, memoryMiB, request, functionKey: key } = one;
      const mayGo = users === 0 && one.container !== undefined;
      heldMiB += memoryMiB;
      if (key !== undefined) {
        functions.push(key);
        requestSum += request;
        limitSum += one.limit;
        classSum += one.shareClass * 10;
      }
      if (mayGo) {
        if (key !== undefined) idle.push(key);
        continue;
      }
      stayingMiB += memoryMiB;
      staying.push(one);
      if (users === 0) continue;
      busy += 1;
      running += request;
    }
    account.occupants = occupants;
    account.staying = staying;
    const foreignMiB =
      slice !== undefined ? entry.othersMiB : Math.max(entry.othersMiB, entry.usedMiB - heldMiB - goingMiB);
    account.foreignMiB = foreignMiB;
    account.freeMiB = capacityMiB - foreignMiB - heldMiB;
    account.availableMiB = capacityMiB - foreignMiB - stayingMiB;
    account.clients = occupants.length;
    account.busy = busy;
    account.load = running / 1000;
    account.requestSum = requestSum;
    account.limitSum = limitSum;
    account.classSum = classSum;
    if (this.ordered !== undefined) {
      writeColumns(this.columns, account);
      this.fullest?.changed(account);
      this.byNode?.changed(account);
    }
    this.index(entry, functions, idle);
    this.sort(entry, Math.min(loadBuckets, Math.floor((running * loadBuckets) / 1000)));
  }

  /** Puts a place among those that are loaded alike. */
  private sort(entry: Entry, bucket: number): void {
    if (entry.bucket === bucket) return;
    const sets = this.byLoad as readonly Set<PlaceAccount>[];
    sets[entry.bucket]?.delete(entry.account);
    sets[bucket]?.add(entry.account);
    entry.bucket = bucket;
  }

  /** Has the indexes name the functions with an instance on a place, and those with one that idles. */
  private index(entry: Entry, functions: readonly string[], idle: readonly string[]): void {
    const { account } = entry;
    if (!areSame(entry.functions, functions)) reindex(this.byFunction, account, entry.functions, functions);
    if (!areSame(entry.idle, idle)) reindex(this.byIdleFunction, account, entry.idle, idle);
    entry.functions = functions;
    entry.idle = idle;
  }
}
