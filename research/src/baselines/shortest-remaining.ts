import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';

/**
 * Shortest remaining time at the moment of decision, the start included. A run is not interrupted: a job that is stopped
 * here starts over, so that its remaining time would be its whole length again. Among waiting tasks the order differs from
 * `time-priority` by the time of their starts, and the task goes where the fewest run.
 */
export const shortestRemaining: PolicyRecord = {
  summary: 'the shortest time to the result first, start included, each with the share that it fills',
  admit: 'before-slo',
  order: 'least-remaining-first',
  share: 'filling',
  place: 'fewest-tasks',
};
