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
  /** Takes no further runs; leaves its action when the last one ends. */
  retiring: boolean;
  /** The worst that its runs said of it. */
  disposition: Disposition;
  /** Has left its action, to be unloaded or destroyed: once. */
  gone: boolean;
  paused: boolean;
  /** Processor time of a container that waits for its first run, when it was last looked at, ms. */
  idleProcessorMs: number | undefined;
  /** Resolves once the last freeze has taken effect or failed. */
  pausing: Promise<void> | undefined;
  /** Set while it is being thawed: resolves or rejects with that. */
  resuming: Promise<void> | undefined;
  /** The part of the container's busy time that its action's queue has counted, ms. */
  countedBusyMs: number;
  /** Monotonic ms of the last end of a run. */
  lastUsedMs: number;
}

/**
 * What is to become of a container after a run: it serves on, or its action has to be unloaded because it failed, or it
 * is of no more use.
 */
export type Disposition = 'keep' | 'recover' | 'discard';

/** A container that joins an action at the moment `nowMs` of the monotonic clock. */
export function newMember(container: Container, origin: LoadingStart, createMs: number, nowMs: number): PoolMember {
  return {
    container,
    origin,
    createMs,
    initialized: false,
    used: false,
    active: 0,
    retiring: false,
    disposition: 'keep',
    gone: false,
    paused: false,
    idleProcessorMs: undefined,
    pausing: undefined,
    resuming: undefined,
    countedBusyMs: container.busyMs,
    lastUsedMs: nowMs,
  };
}

const dispositions: readonly Disposition[] = ['keep', 'recover', 'discard'];

/** The worse of two. */
export function worse(one: Disposition, other: Disposition): Disposition {
  return dispositions.indexOf(one) > dispositions.indexOf(other) ? one : other;
}
