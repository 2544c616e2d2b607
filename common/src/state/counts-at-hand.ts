import type { Clock } from '../system/clock.js';
import { StateUnavailableError } from './cluster-state.js';
import type { Awaitable, ClusterState, Holds, WindowCounters } from './cluster-state.js';
import { embeddedState } from './embedded-state.js';

/**
 * `state`, whose counters and holds are this process's own while it cannot be reached: limits then hold for each process by
 * itself, so that all together let in as many times as much as there are processes. Windows begin anew, holds are known from
 * before. `onAway` is told of every answer that came from here.
 */
export function countsAtHand(
  state: ClusterState,
  clock: Clock,
  onAway: (error: StateUnavailableError) => void,
): ClusterState {
  const local = embeddedState(clock);

  async function known<Count>(asked: Promise<Count>, own: () => Count): Promise<Count> {
    try {
      return await asked;
    } catch (error) {
      if (!(error instanceof StateUnavailableError)) throw error;
      onAway(error);
      return own();
    }
  }

  const either = <Count>(asked: Awaitable<Count>, own: () => Count): Awaitable<Count> =>
    asked instanceof Promise ? known(asked, own) : asked;

  return {
    windowCounters(name: string, windowMs: number): WindowCounters {
      const shared = state.windowCounters(name, windowMs);
      const own = local.windowCounters(name, windowMs);
      return { add: (key) => either(shared.add(key), () => own.add(key)) };
    },
    holds(name: string): Holds {
      const shared = state.holds(name);
      const own = local.holds(name);
      return {
        hold(key, token, ttlMs) {
          // At once, so that a release that comes before the answer finds it.
          const count = own.hold(key, token, ttlMs);
          return either(shared.hold(key, token, ttlMs), () => count);
        },
        release(key, token) {
          own.release(key, token);
          return shared.release(key, token);
        },
        count: (key) => either(shared.count(key), () => own.count(key)),
        tokens: (key) => either(shared.tokens(key), () => own.tokens(key)),
      };
    },
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
