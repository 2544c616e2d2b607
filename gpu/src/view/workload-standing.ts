/** Time without a report after which a workload's rate is unknown, ms. */
export const workloadStaleMs = 10_000;

/**
 * A reporting workload's rate against its bound. Only `within-bound` says that the workload is well: a `stale` one has
 * not reported for `workloadStaleMs`, and without a baseline (`no-baseline`) its degradation is not known.
 */
export type WorkloadStanding = 'within-bound' | 'beyond-bound' | 'no-baseline' | 'stale';

/** Rates of a workload in its own unit, the time of its last report (epoch ms), and its bound, fraction 0–1. */
export interface ReportedRates {
  baselineRate?: number;
  rate?: number;
  reportedAt?: number;
  maxDegradation: number;
}

/**
 * The standing of a workload at `at`, epoch ms, with its degradation 1 − rate / baseline, fraction 0–1 (0 if the rate is
 * above the baseline). The degradation is absent if the last report is stale. Undefined if the workload never reported.
 */
export function standingOf(
  { baselineRate, rate, reportedAt, maxDegradation }: ReportedRates,
  at: number,
): { state: WorkloadStanding; degradation?: number } | undefined {
  if (rate === undefined || reportedAt === undefined) return undefined;
  // A report of the far future is one of another controller's clock, or was made before this clock was set back.
  if (Math.abs(at - reportedAt) > workloadStaleMs) return { state: 'stale' };
  if (baselineRate === undefined) return { state: 'no-baseline' };
  const degradation = Math.max(0, 1 - rate / baselineRate);
  return { state: degradation > maxDegradation ? 'beyond-bound' : 'within-bound', degradation };
}
