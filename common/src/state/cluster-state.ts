import type { JsonValue } from '../json.js';

/** What an operation gives: at once where the state lies in this process, later where it lies elsewhere. */
export type Awaitable<Result> = Result | Promise<Result>;

/** Counters that start from zero with every window of time. */
export interface WindowCounters {
  /** Adds `amount`, a whole number (default 1), to the count of `key` in the window that now lies in; gives the new count. */
  add(key: string, amount?: number): Awaitable<number>;
}

/** A hold that is not over. */
export interface Held {
  key: string;
  token: string;
  /** It ends by itself after so long. */
  leftMs: number;
}

/** Who holds what: each key has holders, named by tokens, that count until they release it or their time is over. */
export interface Holds {
  /** Holds `key` for at most `ttlMs`; a token that holds it already holds it for so long from now. Gives the number of holders. */
  hold(key: string, token: string, ttlMs: number): Awaitable<number>;
  /** Ends a hold; one that is over already is no error. */
  release(key: string, token: string): Awaitable<void>;
  /** The number of holders of `key`. */
  count(key: string): Awaitable<number>;
  /** The holders of `key`, in no particular order. */
  tokens(key: string): Awaitable<string[]>;
  /** The holders of all keys, in no particular order: takes as long as there are keys in the state. */
  all(): Awaitable<Held[]>;
}

/** A right that one holder has at a time. */
export interface Lease {
  readonly name: string;
  readonly holder: string;
  /** Greater than that of every earlier lease, of whatever name: a resource refuses who comes with a smaller one. */
  readonly epoch: number;
}

/** Ends what it stands for; a second call does nothing. */
export interface StateSubscription {
  close(): Promise<void>;
}

/** A row of a table was set (`value`) or deleted (undefined). Rows whose time is over are not announced. */
export type RowListener = (key: string, value: JsonValue | undefined) => void;

/** Thrown by every operation while the state cannot be reached. */
export class StateUnavailableError extends Error {
  override name = 'StateUnavailableError';
}

/**
 * What the processes of a cluster know together: counters, holds, leases, small tables, and word of changes. It is
 * as lasting as the cluster's memory: what must survive a power loss belongs in the ArtifactStore. Values are JSON
 * and copied; names may hold any characters. All operations throw (or reject with) StateUnavailableError.
 */
export interface ClusterState {
  /** The counters called `name`. Windows are `windowMs` long and start at multiples of that since the epoch. */
  windowCounters(name: string, windowMs: number): WindowCounters;
  /** The holds called `name`. */
  holds(name: string): Holds;

  /**
   * Takes the lease for `ttlMs`; undefined while another holder has it. A holder that has it gets a new one, and its
   * earlier one is over: that of a process that started again under its old name.
   */
  acquireLease(name: string, holder: string, ttlMs: number): Promise<Lease | undefined>;
  /** Has the lease last for `ttlMs` from now; false if it is over. */
  renewLease(lease: Lease, ttlMs: number): Promise<boolean>;
  /** Gives the lease back; one that is over is no error. */
  releaseLease(lease: Lease): Promise<void>;
  /** The lease that is held now. */
  currentLease(name: string): Promise<Lease | undefined>;

  /** Sets a row, for `ttlMs` where that is given, and tells those who watch. */
  setRow(table: string, key: string, value: JsonValue, ttlMs?: number): Promise<void>;
  /** Deletes a row and tells those who watch; one that is not there is no error. */
  deleteRow(table: string, key: string): Promise<void>;
  /** The rows of a table by key. */
  rows(table: string): Promise<Map<string, JsonValue>>;
  /** Calls `listener`, which must not throw, for every change from now on, those made here included. */
  watch(table: string, listener: RowListener): Promise<StateSubscription>;

  /** Sends a message to all who subscribe now. It comes once or, when the state is not reached, never. */
  publish(channel: string, message: JsonValue): Promise<void>;
  /** Calls `listener`, which must not throw, for every message from now on, in each sender's order. */
  subscribe(channel: string, listener: (message: JsonValue) => void): Promise<StateSubscription>;

  close(): Promise<void>;
}
