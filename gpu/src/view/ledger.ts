import type { NodeStatus, Placement } from '@gpuwhisk/common/gpu';
import type { Account } from '../place/account.js';
import { foreignMiB, occupantsOf, placeIdsOf, shownByPlace } from './occupancy.js';
import type { Occupant, Reservation, ShownOccupant } from './occupancy.js';
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

interface Entry {
  account: PlaceAccount;
  shown: readonly ShownOccupant[];
  /** Reservations that are on it. */
  here: Set<Reservation>;
  /** Functions with an instance there, as the index has them. */
  functions: readonly string[];
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

/** How often it is looked for runs whose end nobody told, ms. */
const sweepMs = 1000;

/** The index's key of a function's instances. */
function functionKey({ action, namespace }: Pick<Occupant, 'action' | 'namespace'>): string {
  return `${namespace} ${action}`;
}

/**
 * What is on every place of the cluster: what the agents tell, and what was given out that they do not show yet. It is
 * kept up to date by place, so that no change costs work proportional to the cluster.
 */
export class Ledger {
  private readonly nodes = new Map<string, Node>();
  private readonly entries = new Map<string, Entry>();
  private readonly held = new Map<string, Held>();
  private readonly byFunction = new Map<string, Set<PlaceAccount>>();
  /** Absent: to be put in order again. */
  private ordered: PlaceAccount[] | undefined;
  private sweptMs = -Infinity;

  /** The accounts of all places, by the names of nodes and the order of their devices. */
  accounts(): readonly PlaceAccount[] {
    if (this.ordered === undefined) {
      const nodes = [...this.nodes].sort(([one], [other]) => (one < other ? -1 : 1));
      this.ordered = nodes.flatMap(([, { entries }]) => entries.map(({ account }) => account));
      for (const [order, account] of this.ordered.entries()) account.order = order;
    }
    return this.ordered;
  }

  /** The account of a place; undefined if it is not known. */
  account(id: string): PlaceAccount | undefined {
    return this.entries.get(id)?.account;
  }

  /** The accounts of places that have an instance of a function, in no particular order. */
  withInstances(work: Pick<Occupant, 'action' | 'namespace'>): Iterable<PlaceAccount> {
    return this.byFunction.get(functionKey(work)) ?? [];
  }

  /** When the newest row of a node came, monotonic ms; -Infinity if there is none. */
  seenMs(invoker: string): number {
    return this.nodes.get(invoker)?.seenMs ?? -Infinity;
  }

  /** The rows of all nodes, by their names. */
  rows(): NodeStatus[] {
    const rows = Array.from(this.nodes.values(), ({ row }) => row);
    return rows.sort((one, other) => (one.invoker < other.invoker ? -1 : 1));
  }

  /**
   * A node's row has come (`nowMs`: monotonic). Gives the activations that should have ended by now and have not: what was
   * given out to them counts no more.
   */
  heard(row: NodeStatus, nowMs: number): string[] {
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
      entry.account.place = places[at]!;
      entry.shown = shown.get(entry.account.id) ?? [];
      this.sum(entry);
    }
    return lost;
  }

  /** A node is gone, or is not heard of any more; what was given out there stays given out. */
  silent(invoker: string): void {
    if (!this.nodes.has(invoker)) return;
    this.forget(invoker);
    this.nodes.delete(invoker);
    this.ordered = undefined;
  }

  /** A placement was given out; `lostMs`: when its run will have ended at the latest, monotonic ms. */
  hold(reservation: Reservation, lostMs: number): void {
    this.release(reservation.activationId);
    this.held.set(reservation.activationId, { reservation, lostMs });
    this.change(reservation, (here) => here.add(reservation));
  }

  /** The run of an activation is over. */
  end(activationId: string): void {
    const reservation = this.held.get(activationId)?.reservation;
    if (reservation === undefined) return;
    reservation.ended = true;
    this.change(reservation);
  }

  /** It never came to run, or counts no more. */
  release(activationId: string): void {
    const reservation = this.held.get(activationId)?.reservation;
    if (reservation === undefined) return;
    this.held.delete(activationId);
    this.change(reservation, (here) => here.delete(reservation));
  }

  /** Where an activation that has not ended was sent. */
  placementOf(activationId: string): Placement | undefined {
    const reservation = this.held.get(activationId)?.reservation;
    return reservation?.ended === false ? reservation.placement : undefined;
  }

  /** What was given out to activations that have not ended, the oldest first. */
  unended(): Reservation[] {
    return Array.from(this.held.values(), ({ reservation }) => reservation).filter(({ ended }) => !ended);
  }

  /** What was given out on a place. */
  heldOn(id: string): Iterable<Reservation> {
    return this.entries.get(id)?.here ?? [];
  }

  private forget(invoker: string): void {
    for (const entry of this.nodes.get(invoker)?.entries ?? []) {
      this.index(entry, []);
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
    const here = new Set<Reservation>();
    for (const { reservation } of this.held.values()) {
      const { placement } = reservation;
      if (placement.invoker === place.node.invoker && placeIdsOf(placement).includes(id)) here.add(reservation);
    }
    const entry: Entry = { account, shown: [], here, functions: [] };
    this.entries.set(id, entry);
    return entry;
  }

  /** Ends what of the node's reservations is over; others name their container by now. */
  private settle({ invoker, residents }: NodeStatus): void {
    const containerOf = new Map<string, string>();
    for (const { container, activations } of residents) for (const id of activations) containerOf.set(id, container);
    const here = new Set<Reservation>();
    for (const entry of this.nodes.get(invoker)?.entries ?? []) for (const one of entry.here) here.add(one);
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
    for (const { reservation } of over) this.release(reservation.activationId);
    return over.filter(({ reservation }) => !reservation.ended).map(({ reservation }) => reservation.activationId);
  }

  /** As `release`, of a node whose places are counted anew anyway. */
  private drop(reservation: Reservation): void {
    this.held.delete(reservation.activationId);
    for (const id of placeIdsOf(reservation.placement)) this.entries.get(id)?.here.delete(reservation);
  }

  private change({ placement }: Reservation, edit?: (here: Set<Reservation>) => void): void {
    for (const id of placeIdsOf(placement)) {
      const entry = this.entries.get(id);
      if (entry === undefined) continue;
      edit?.(entry.here);
      this.sum(entry);
    }
  }

  /** Counts a place anew. */
  private sum(entry: Entry): void {
    const { account, shown, here } = entry;
    const { place } = account;
    const occupants = occupantsOf(shown, here);
    const staying: Occupant[] = [];
    let heldMiB = 0;
    let stayingMiB = 0;
    let busy = 0;
    let request = 0;
    for (const one of occupants) {
      heldMiB += one.memoryMiB;
      if (one.users > 0) {
        busy += 1;
        request += Math.round(one.smRequest * 1000);
      } else if (one.container !== undefined) continue;
      stayingMiB += one.memoryMiB;
      staying.push(one);
    }
    account.occupants = occupants;
    account.staying = staying;
    account.health = place.status?.health;
    account.capacityMiB = place.capacityMiB;
    account.foreignMiB = foreignMiB(place, heldMiB);
    account.freeMiB = place.capacityMiB - account.foreignMiB - heldMiB;
    account.availableMiB = place.capacityMiB - account.foreignMiB - stayingMiB;
    account.clients = occupants.length;
    account.busy = busy;
    account.workloads = place.status?.processes.filter(({ container }) => container === undefined).length ?? 0;
    account.load = request / 1000;
    this.index(entry, occupants);
  }

  /** Has the index name the functions with an instance on a place. */
  private index(entry: Entry, occupants: readonly Occupant[]): void {
    const { functions: known, account } = entry;
    let isSame = true;
    const functions: string[] = [];
    for (const one of occupants) {
      if (one.action === undefined) continue;
      const key = functionKey(one);
      isSame &&= known[functions.length] === key;
      functions.push(key);
    }
    if (isSame && functions.length === known.length) return;
    for (const key of known) {
      const places = this.byFunction.get(key);
      places?.delete(account);
      if (places?.size === 0) this.byFunction.delete(key);
    }
    for (const key of functions) {
      const places = this.byFunction.get(key);
      if (places === undefined) this.byFunction.set(key, new Set([account]));
      else places.add(account);
    }
    entry.functions = functions;
  }
}
