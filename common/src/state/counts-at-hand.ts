import type { Clock } from '../system/clock.js';
import { StateUnavailableError } from './cluster-state.js';
import type { Awaitable, ClusterState, Holds, WindowCounters } from './cluster-state.js';
import { embeddedState } from './embedded-state.js';

type OnAway = (error: StateUnavailableError) => void;

/** Releases that the cluster is told of later, at most, by name of holds. */
const maxOwed = 10_000;

/**
 * `state`, whose counters and holds are this process's own while it cannot be reached: limits then hold for each process by
 * itself, so that all together let in as many times as much as there are processes. Windows start empty, holds are known from
 * before; those that end meanwhile are released once it is back (10,000 at most, others end by themselves). `onAway` is told
 * of every answer that came from here.
 */
export function countsAtHand(state: ClusterState, clock: Clock, onAway: OnAway): ClusterState {
  const local = embeddedState(clock);
  return {
    windowCounters(name: string, windowMs: number): WindowCounters {
      const shared = state.windowCounters(name, windowMs);
      const own = local.windowCounters(name, windowMs);
      return { add: (key, amount) => either(shared.add(key, amount), () => own.add(key, amount), onAway) };
    },
    holds: (name: string): Holds => holdsAtHand(state.holds(name), local.holds(name), onAway),
    acquireLease: (...args) => state.acquireLease(...args),
    renewLease: (...args) => state.renewLease(...args),
    releaseLease: (...args) => state.releaseLease(...args),
    currentLease: (...args) => state.currentLease(...args),
    setRow: (...args) => state.setRow(...args),
    deleteRow: (...args) => state.deleteRow(...args),
    rows: (...args) => state.rows(...args),
    watch: (...args) => state.watch(...args),
    publish: (...args) => state.publish(...args),
    subscribe: (...args) => state.subscribe(...args),
    close: () => state.close(),
  };
}

/** What was asked for, or `own` where the cluster cannot be reached. */
function either<Answer>(asked: Awaitable<Answer>, own: () => Awaitable<Answer>, onAway: OnAway): Awaitable<Answer> {
  if (!(asked instanceof Promise)) return asked;
  return asked.catch((error: unknown) => {
    if (!(error instanceof StateUnavailableError)) throw error;
    onAway(error);
    return own();
  });
}

function holdsAtHand(shared: Holds, own: Holds, onAway: OnAway): Holds {
  /** Releases that the cluster does not know of, in their order. */
  const owed = new Map<string, [key: string, token: string]>();
  let isPaying = false;

  function owe(key: string, token: string): void {
    const [oldest] = owed.keys();
    if (owed.size >= maxOwed && oldest !== undefined) owed.delete(oldest);
    owed.set(JSON.stringify([key, token]), [key, token]);
  }

  async function pay(): Promise<void> {
    isPaying = true;
    try {
      for (const [id, [key, token]] of owed) {
        await shared.release(key, token);
        owed.delete(id);
      }
    } catch (error) {
      onAway(error as StateUnavailableError);
    } finally {
      isPaying = false;
    }
  }

  return {
    hold(key, token, ttlMs) {
      // At once, so that a release that comes before the answer finds it.
      const count = own.hold(key, token, ttlMs);
      return either(shared.hold(key, token, ttlMs), () => count, onAway);
    },
    release(key, token) {
      void own.release(key, token);
      const released = shared.release(key, token);
      if (!(released instanceof Promise)) return released;
      const told = released.then(() => {
        if (owed.size > 0 && !isPaying) void pay();
      });
      return either(told, () => owe(key, token), onAway);
    },
    count: (key) => either(shared.count(key), () => own.count(key), onAway),
    tokens: (key) => either(shared.tokens(key), () => own.tokens(key), onAway),
    all: () => either(shared.all(), () => own.all(), onAway),
  };
}
