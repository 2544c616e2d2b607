import { percentile } from '../statistics.js';
import type { ReplayRun } from '@gpuwhisk/gpu/simulate/replay';
import { waitsOf, type Waits } from './waits.js';

/** What a replay comes to. Times in ms. */
export interface ReplayMetrics extends Waits {
  /** Mean time from arrival to result. */
  jctMs: number;
  /** Mean time from start to result: FaaShare's own reading of JCT. */
  runMs: number;
  p50Ms: number;
  p95Ms: number;
  p99Ms: number;
  /** P99 of the time from arrival to result over the time alone. */
  p99Stretch: number;
  /** From the first arrival to the last result. */
  makespanMs: number;
  /** Solo time worked off for each ms of the makespan: how many whole GPUs' worth of work were done at a time. */
  stp: number;
  /** Part of the jobs with an SLO that had no result in time; 0 where none has one. */
  violations: number;
  /** Part of the SMs in use, over all GPUs and the makespan. */
  utilisation: number;
  /** Part of the free memory, while jobs wait, on GPUs where none of them fits. */
  fragmentation: number;
  /** GPU hours with a job on the GPU: what a pay-as-you-go operator pays for. */
  gpuHours: number;
}

/**
 * The metrics of a replay in which at least one job has finished. `withSlo`: jobs with an SLO; `bestEffortMs`: after which
 * no job overtakes another any more.
 */
export function metricsOf(
  { finished, refused, totals }: ReplayRun,
  withSlo: number,
  bestEffortMs: number,
): ReplayMetrics {
  const jct = finished.map(({ job, finishedAt }) => finishedAt - job.task.arrivedAt);
  const first = Math.min(...finished.map(({ job }) => job.task.arrivedAt));
  const makespanMs = Math.max(...finished.map(({ finishedAt }) => finishedAt)) - first;
  const late = finished.filter(
    ({ job: { task }, finishedAt }) => finishedAt > task.arrivedAt + (task.sloMs ?? Infinity),
  );
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  return {
    jctMs: mean(jct),
    runMs: mean(finished.map(({ startedAt, finishedAt }) => finishedAt - startedAt)),
    p50Ms: percentile(jct, 50),
    p95Ms: percentile(jct, 95),
    p99Ms: percentile(jct, 99),
    p99Stretch: percentile(
      finished.map(({ job, finishedAt }) => (finishedAt - job.task.arrivedAt) / job.soloMs),
      99,
    ),
    makespanMs,
    stp: totals.progressMs / makespanMs,
    violations: withSlo === 0 ? 0 : (late.length + refused.length) / withSlo,
    utilisation: totals.usedMs / totals.gpuMs,
    fragmentation: totals.freeMiBMs === 0 ? 0 : totals.strandedMiBMs / totals.freeMiBMs,
    gpuHours: totals.occupiedMs / 3_600_000,
    ...waitsOf(finished, bestEffortMs),
  };
}
