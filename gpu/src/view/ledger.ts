import type { NodeStatus, Placement } from '@gpuwhisk/common/gpu';
import type { Account } from './account.js';
import { functionKey, occupantsOf, othersMiB, placeIdsOf, shownByPlace, standingsOf } from './occupancy.js';
import type { Occupant, Reservation, ShownOccupant, Standing } from './occupancy.js';
import { placeId, placesOf } from './places.js';
import type { Place } from './places.js';

/** The account of a place of a node: its sums, and who is there. */
export interface PlaceAccount extends Account {
  readonly id: string;
  place: Place;
  /** Position among all accounts, by the names of nodes and the order of their devices. */
  order: number;
  occupants: readonly Occupant[];
  /** Memory of processes that are not the platform's, MiB. */
  foreignMiB: number;
  /** Memory that is free without removing anything, MiB. */
  freeMiB: number;
  /** Requests of what runs, as fractions of the SMs; a sum of thousandths, so that it does not drift. */
  load: number;
}

/** Sums of all places by their `order`, as arrays of numbers: a scan of them reads no object. */
export interface AccountColumns {
  load: Float64Array;
  freeMiB: Float64Array;
  availableMiB: Float64Array;
}

/** A policy has called the ledger more often in one pass, or changed more of it, than a pass may. */
export class LedgerMisuseError extends Error {
  override name = 'LedgerMisuseError';
}

interface Pass {
  mostCalls: number;
  callsLeft: number;
  /** Activations that the pass may place. */
  tasks: { has(activationId: string): boolean };
  /** Activations that it has placed. */
  held: Set<string>;
}

interface Entry {
  account: PlaceAccount;
  shown: readonly ShownOccupant[];
  /** Memory of processes that are not the platform's, as they say, MiB. */
  othersMiB: number;
  /** Reservations that are on it. */
  here: Map<Reservation, Standing>;
  /** Functions with an instance there, and with one that idles, as the indexes have them. */
  functions: readonly string[];
  idle: readonly string[];
  /** In which of `byLoad` it is; -1: in none. */
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

/** How often it is looked for runs whose end nobody told, ms. */
const sweepMs = 1000;

/**
 * What is on every place of the cluster: what the agents tell, and what was given out that they do not show yet. It is
 * kept up to date by place, so that no change costs work proportional to the cluster.
 */
export class Ledger {
  private readonly nodes = new Map<string, Node>();
  private readonly entries = new Map<string, Entry>();
  private readonly held = new Map<string, Held>();
  private readonly byFunction = new Map<string, Set<PlaceAccount>>();
  private readonly byIdleFunction = new Map<string, Set<PlaceAccount>>();
  /** Absent: to be put in order again. */
  private ordered: PlaceAccount[] | undefined;
  private columns: AccountColumns = columnsOf([]);
  private sweptMs = -Infinity;
  private pass: Pass | undefined;
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
  beginPass(mostCalls: number, tasks: Pass['tasks']): void {
    this.pass = { mostCalls, callsLeft: mostCalls, tasks, held: new Set() };
  }

  /** Ends a pass. Gives the activations that it has placed and not released. */
  endPass(): ReadonlySet<string> {
    const { held = new Set<string>() } = this.pass ?? {};
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
    }
    return this.ordered;
  }

  /** The sums of `accounts()`. */
  sums(): AccountColumns {
    this.count();
    if (this.ordered === undefined) this.inOrder();
    return this.columns;
  }

  /** The account of a place; undefined if it is not known. */
  account(id: string): PlaceAccount | undefined {
    this.count();
    return this.entries.get(id)?.account;
  }

  /** The accounts of places that have an instance of a function, in no particular order; `idle`: one that idles. */
  withInstances(work: { action: string; namespace: string }, idle: boolean): Iterable<PlaceAccount> {
    this.count();
    return (idle ? this.byIdleFunction : this.byFunction).get(functionKey(work)) ?? [];
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
   * A node's row has come (`nowMs`: monotonic). Gives the activations that should have ended by now and have not: what was
   * given out to them counts no more.
   */
  heard(row: NodeStatus, nowMs: number): string[] {
    this.refuseInPass('takes no rows');
    const { invoker } = row;
    const known = this.nodes.get(invoker);
    const places = placesOf([row]);
    const isSame =
      known?.entries.length === places.length &&
      known.entries.every(({ account }, at) => account.id === placeId(places[at]!));
    if (!isSame) {
      this.forget(invoker);
      this.ordered = undefined;
    }
    const entries = isSame ? known.entries : places.map((place) => this.open(place));
    this.nodes.set(invoker, { row, seenMs: nowMs, entries });
    this.settle(row);
    const lost = this.sweep(nowMs);
    const shown = shownByPlace(row);
    for (const [at, entry] of entries.entries()) {
      const { account } = entry;
      const place = places[at]!;
      account.place = place;
      account.health = place.status?.health;
      account.capacityMiB = place.capacityMiB;
      account.workloads = place.status?.processes.filter(({ container }) => container === undefined).length ?? 0;
      entry.shown = shown.get(account.id) ?? [];
      entry.here = standingsOf(entry.shown, entry.here.keys());
      entry.othersMiB = othersMiB(place);
      this.sum(entry);
    }
    return lost;
  }

  /** A node is gone, or is not heard of any more; what was given out there stays given out. */
  silent(invoker: string): void {
    this.refuseInPass('forgets no nodes');
    if (!this.nodes.has(invoker)) return;
    this.forget(invoker);
    this.nodes.delete(invoker);
    this.ordered = undefined;
  }

  /**
   * A placement is given out; `lostMs`: when its run will have ended at the latest, monotonic ms. One that is held already
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
    this.remove(reservation.activationId);
    this.held.set(reservation.activationId, { reservation, lostMs });
    this.change(reservation, ({ here, shown }) => {
      const [there] = shown.filter(({ activations }) => activations.includes(reservation.activationId));
      here.set(reservation, { shown: there?.occupant, promised: undefined });
    });
  }

  /** The run of an activation is over. */
  end(activationId: string): void {
    this.refuseInPass('ends no runs');
    const reservation = this.held.get(activationId)?.reservation;
    if (reservation === undefined) return;
    reservation.ended = true;
    this.change(reservation);
  }

  /** It never came to run, or counts no more. */
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
    this.change(reservation, ({ here }) => here.delete(reservation));
  }

  /** Where an activation that has not ended was sent. */
  placementOf(activationId: string): Placement | undefined {
    this.count();
    const reservation = this.held.get(activationId)?.reservation;
    return reservation?.ended === false ? reservation.placement : undefined;
  }

  /** What was given out to activations that have not ended, the oldest first. */
  unended(): Reservation[] {
    this.count();
    return Array.from(this.held.values(), ({ reservation }) => reservation).filter(({ ended }) => !ended);
  }

  /** All that was given out and is not settled, the oldest first; runs that have ended are among them. */
  reservations(): Reservation[] {
    this.count();
    return Array.from(this.held.values(), ({ reservation }) => reservation);
  }

  /** Ids of the places in the order of `byLoad`, in which a first fit tries them. */
  byLoadIds(): string[] {
    return this.byLoad.flatMap((accounts) => Array.from(accounts, ({ id }) => id));
  }

  /** What was given out on a place. */
  heldOn(id: string): Iterable<Reservation> {
    this.count();
    return this.entries.get(id)?.here.keys() ?? [];
  }

  private count(): void {
    const { pass } = this;
    if (pass === undefined) return;
    pass.callsLeft -= 1;
    if (pass.callsLeft < 0) throw new LedgerMisuseError(`a policy called the ledger more than ${pass.mostCalls} times`);
  }

  private refuseInPass(what: string): void {
    if (this.pass !== undefined) throw new LedgerMisuseError(`the ledger ${what} for a policy`);
  }

  private checkChange(activationId: string): void {
    const { pass } = this;
    if (pass === undefined || pass.held.has(activationId) || pass.tasks.has(activationId)) return;
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
    const account: PlaceAccount = {
      ...{ id, place, order: -1, occupants: [], foreignMiB: 0, freeMiB: 0, load: 0 },
      ...{ mode: place.device.mode, health: undefined, capacityMiB: 0, availableMiB: 0 },
      ...{ clients: 0, busy: 0, workloads: 0, staying: [] },
    };
    const there = Array.from(this.held.values(), ({ reservation }) => reservation).filter(
      ({ placement }) => placement.invoker === place.node.invoker && placeIdsOf(placement).includes(id),
    );
    const here = standingsOf([], there);
    const entry: Entry = { account, shown: [], othersMiB: 0, here, functions: [], idle: [], bucket: -1 };
    this.entries.set(id, entry);
    return entry;
  }

  /** Ends what of the node's reservations is over; others name their container by now. */
  private settle({ invoker, residents }: NodeStatus): void {
    const containerOf = new Map<string, string>();
    for (const { container, activations } of residents) for (const id of activations) containerOf.set(id, container);
    const here = new Set<Reservation>();
    for (const entry of this.nodes.get(invoker)?.entries ?? []) for (const one of entry.here.keys()) here.add(one);
    for (const reservation of here) {
      const { activationId, ended, reuses } = reservation;
      if (ended && !containerOf.has(activationId)) this.drop(reservation);
      else if (reuses !== undefined) reservation.reuses = containerOf.get(reuses) ?? reuses;
    }
  }

  /** Ends what should have ended long ago, of all nodes, and gives those whose end nobody has told. */
  private sweep(nowMs: number): string[] {
    if (nowMs - this.sweptMs < sweepMs) return [];
    this.sweptMs = nowMs;
    const over = [...this.held.values()].filter(({ lostMs }) => lostMs <= nowMs);
    for (const { reservation } of over) this.remove(reservation.activationId);
    return over.filter(({ reservation }) => !reservation.ended).map(({ reservation }) => reservation.activationId);
  }

  /** As `release`, of a node whose places are counted anew anyway. */
  private drop(reservation: Reservation): void {
    this.held.delete(reservation.activationId);
    for (const id of placeIdsOf(reservation.placement)) this.entries.get(id)?.here.delete(reservation);
  }

  private change({ placement }: Reservation, edit?: (entry: Entry) => void): void {
    for (const id of placeIdsOf(placement)) {
      const entry = this.entries.get(id);
      if (entry === undefined) continue;
      edit?.(entry);
      this.sum(entry);
    }
  }

  /** Counts a place anew. */
  private sum(entry: Entry): void {
    const { account, shown, here } = entry;
    const { status, slice, capacityMiB } = account.place;
    const { occupants, goingMiB } = occupantsOf(shown, here);
    const staying: Occupant[] = [];
    const functions: string[] = [];
    const idle: string[] = [];
    let heldMiB = 0;
    let stayingMiB = 0;
    let busy = 0;
    let request = 0;
    for (const one of occupants) {
      const { users, memoryMiB, functionKey: key } = one;
      const mayGo = users === 0 && one.container !== undefined;
      heldMiB += memoryMiB;
      if (key !== undefined) functions.push(key);
      if (mayGo) {
        if (key !== undefined) idle.push(key);
        continue;
      }
      stayingMiB += memoryMiB;
      staying.push(one);
      if (users === 0) continue;
      busy += 1;
      request += Math.round(one.smRequest * 1000);
    }
    account.occupants = occupants;
    account.staying = staying;
    // What is in use is told of whole devices only.
    const foreignMiB =
      slice !== undefined
        ? entry.othersMiB
        : Math.max(entry.othersMiB, (status?.usedMemoryMiB ?? 0) - heldMiB - goingMiB);
    account.foreignMiB = foreignMiB;
    account.freeMiB = capacityMiB - foreignMiB - heldMiB;
    account.availableMiB = capacityMiB - foreignMiB - stayingMiB;
    account.clients = occupants.length;
    account.busy = busy;
    account.load = request / 1000;
    if (this.ordered !== undefined) write(this.columns, account);
    this.index(entry, functions, idle);
    this.sort(entry, Math.min(loadBuckets, Math.floor((request * loadBuckets) / 1000)));
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
    if (!isSame(entry.functions, functions)) replace(this.byFunction, account, entry.functions, functions);
    if (!isSame(entry.idle, idle)) replace(this.byIdleFunction, account, entry.idle, idle);
    entry.functions = functions;
    entry.idle = idle;
  }
}

function columnsOf(accounts: readonly PlaceAccount[]): AccountColumns {
  const column = (): Float64Array => new Float64Array(accounts.length);
  const columns = { load: column(), freeMiB: column(), availableMiB: column() };
  for (const account of accounts) write(columns, account);
  return columns;
}

function write(columns: AccountColumns, { order, load, freeMiB, availableMiB }: PlaceAccount): void {
  columns.load[order] = load;
  columns.freeMiB[order] = freeMiB;
  columns.availableMiB[order] = availableMiB;
}

function isSame(some: readonly string[], others: readonly string[]): boolean {
  if (some.length !== others.length) return false;
  for (let at = 0; at < some.length; at += 1) if (some[at] !== others[at]) return false;
  return true;
}

/** Has an index name a place under `keys`, which it named under `known`. */
function replace(
  index: Map<string, Set<PlaceAccount>>,
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
    const places = index.get(key);
    if (places === undefined) index.set(key, new Set([account]));
    else places.add(account);
  }
}
