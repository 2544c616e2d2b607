import type { Clock } from '../system/clock.js';

/**
 * Creates the function that gives the time before which records must have ended to be expired now, ms since the epoch. It is
 * by the wall clock, but not as late as one says that was set forward since the call.
 */
export function recordHorizon(clock: Pick<Clock, 'now' | 'monotonicMs'>, ttlMs: number): () => number {
  const startedAtMs = clock.now() - clock.monotonicMs();
  return () => Math.min(clock.now(), startedAtMs + clock.monotonicMs()) - ttlMs;
}
