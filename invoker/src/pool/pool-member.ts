import type { Container } from '../containers/container-factory.js';

/**
 * How an activation that loaded its code found the container: made for it, ready with a runtime that is started for one
 * action only, or ready with one that takes one action after the other.
 */
export type LoadingStart = 'cold' | 'prewarmed' | 'injected';

/** A container that belongs to one action of one namespace, and what the pool knows of it. */
export interface PoolMember {
  readonly container: Container;
  /** How its first activation will find it. */
  readonly origin: LoadingStart;
  /** How long it took to make, ms. */
  readonly createMs: number;
  /** Whether the action's code is loaded; until then only one run at a time may use it. */
  initialized: boolean;
  /** Whether it had a run. */
  used: boolean;
  /** Runs under way. */
  active: number;
  /** Takes no further runs; destroyed when the last one ends. */
  retiring: boolean;
  /** Is being destroyed: its memory is given back once. */
  discarded: boolean;
  paused: boolean;
  /** Resolves once the last freeze has taken effect or failed. */
  pausing: Promise<void> | undefined;
  /** Set while it is being thawed: resolves or rejects with that. */
  resuming: Promise<void> | undefined;
  /** The part of the container's busy time that its action's queue has counted, ms. */
  countedBusyMs: number;
  /** Monotonic ms of the last end of a run. */
  lastUsedMs: number;
}

/** What the pool does with a container after a run. */
export type Disposition = 'keep' | 'discard';
