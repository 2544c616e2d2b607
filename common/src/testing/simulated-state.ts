import type { JsonValue } from '../json.js';
import type { Clock } from '../system/clock.js';
import type { Random } from '../system/random.js';
import { randomFraction } from '../system/random.js';
import type { ClusterState, Holds, RowListener, StateSubscription, WindowCounters } from '../state/cluster-state.js';
import { StateUnavailableError } from '../state/cluster-state.js';

export interface SimulatedStateOptions {
  clock: Clock;
  random: Random;
  /** How long an operation takes, ms: uniform up to this, there and back. */
  latencyMs?: number;
}

/** One process's way to a state that lies elsewhere. */
export interface SimulatedState extends ClusterState {
  /**
   * Cuts the state off, or joins it again. While it is cut off operations fail, some of them after they took effect,
   * and no news come; what was missed does not come later.
   */
  cutOff(isCutOff: boolean): void;
}

/** `inner` behind a network: several of these around one inner state are the processes of a cluster. */
export function simulatedState(inner: ClusterState, options: SimulatedStateOptions): SimulatedState {
  const { clock, random, latencyMs = 5 } = options;
  let isCutOff = false;
  let closed = false;

  const travel = (): Promise<void> =>
    new Promise((arrive) => {
      clock.setTimer((randomFraction(random) * latencyMs) / 2, arrive);
    });

  async function ask<Result>(operation: () => Result | Promise<Result>): Promise<Result> {
    if (closed) throw new StateUnavailableError('the state is closed');
    await travel();
    if (isCutOff) throw new StateUnavailableError('the state cannot be reached');
    const result = await operation();
    await travel();
    // It took effect, unknown to the caller.
    if (isCutOff) throw new StateUnavailableError('the state did not answer');
    return result;
  }

  /** News travel one behind the other. */
  function inOrder<News extends unknown[]>(listener: (...news: News) => void): (...news: News) => void {
    let last = Promise.resolve();
    return (...news) => {
      last = Promise.all([last, travel()]).then(() => {
        if (!isCutOff && !closed) listener(...news);
      });
    };
  }

  const counters = (name: string, windowMs: number): WindowCounters => {
    const own = inner.windowCounters(name, windowMs);
    return { add: (key, amount) => ask(() => own.add(key, amount)) };
  };
  const holds = (name: string): Holds => {
    const own = inner.holds(name);
    return {
      hold: (key, token, ttlMs) => ask(() => own.hold(key, token, ttlMs)),
      release: (key, token) => ask(() => own.release(key, token)),
      count: (key) => ask(() => own.count(key)),
      tokens: (key) => ask(() => own.tokens(key)),
      all: () => ask(() => own.all()),
    };
  };
  return {
    windowCounters: counters,
    holds,
    acquireLease: (name, holder, ttlMs) => ask(() => inner.acquireLease(name, holder, ttlMs)),
    renewLease: (lease, ttlMs) => ask(() => inner.renewLease(lease, ttlMs)),
    releaseLease: (lease) => ask(() => inner.releaseLease(lease)),
    currentLease: (name) => ask(() => inner.currentLease(name)),
    setRow: (table, key, value, ttlMs) => ask(() => inner.setRow(table, key, value, ttlMs)),
    deleteRow: (table, key) => ask(() => inner.deleteRow(table, key)),
    rows: (table) => ask(() => inner.rows(table)),
    watch: (table, listener: RowListener): Promise<StateSubscription> =>
      ask(() => inner.watch(table, inOrder(listener))),
    publish: (channel, message) => ask(() => inner.publish(channel, message)),
    subscribe: (channel, listener: (message: JsonValue) => void): Promise<StateSubscription> =>
      ask(() => inner.subscribe(channel, inOrder(listener))),
    cutOff(cut) {
      isCutOff = cut;
    },
    close() {
      closed = true;
      return Promise.resolve();
    },
  };
}
