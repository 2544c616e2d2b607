import { partOf } from '@gpuwhisk/gpu/share/share-counts';
import type { ReplayRun, FinishedJob } from '@gpuwhisk/gpu/simulate/replay';
import { percentile } from '../statistics.js';

/** Results of a replay. Times in ms. */
export interface ReplayMetrics extends Waits {
  /** Mean time from arrival to result. */
  jctMs: number;
  /** Mean time from start to result: FaaShare's own reading of JCT. */
  runMs: number;
  p50Ms: number;
  p95Ms: number;
  p99Ms: number;
  /** P99 of the time from arrival to result over solo time. */
  p99Stretch: number;
  /** From the first arrival to the last result. */
  makespanMs: number;
  /** Solo time finished for each ms of the makespan, in whole GPUs. */
  stp: number;
  /** Fraction of the jobs with an SLO whose result came late; 0 if no job has an SLO. */
  violations: number;
  /** Part of the SMs in use, over all GPUs and the makespan. */
  utilisation: number;
  /** Fraction of the free memory, while jobs wait, that is on GPUs where no waiting job fits. */
  fragmentation: number;
  /** GPU hours with a job on the GPU, which a pay-as-you-go operator pays for. */
  gpuHours: number;
  /** Of the choices of shares that put jobs together, the part that a measurement of the very set answered (a hit). */
  tableHitShare: number;
  /** The part of them that the most similar set answered. */
  tableNearShare: number;
  /** Where the most similar set answered: by which part the chosen shares lengthen the times to the ends, by prediction. */
  tableNearRegret: number;
}

/**
 * The metrics of a replay in which at least one job has finished. `withSlo`: jobs with an SLO; `bestEffortMs`: wait
 * after which a best-effort job is not overtaken.
 */
export function metricsOf(
  { finished, refused, totals, shares }: ReplayRun,
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
    tableHitShare: partOf(shares, 'hit'),
    tableNearShare: partOf(shares, 'near'),
    tableNearRegret: shares.near.fillingMs === 0 ? 0 : shares.near.chosenMs / shares.near.fillingMs - 1,
    ...waitsOf(finished, bestEffortMs),
  };
}

/** Waiting times of jobs, and their ratio to the bound that FaaShare's queue guarantees. */
interface Waits {
  /** From arrival to start, ms. */
  longestWaitMs: number;
  /** Fraction of the jobs that waited so long that no job may overtake them. */
  overdue: number;
  /** The longest wait over its bound: above 1, the bound does not hold. */
  waitOverBound: number;
}

/**
 * Waiting times of finished jobs. A job is overdue after max(2 · SLO, `bestEffortMs`) and is then not overtaken. Its
 * bound adds the longest run of the replay for the job itself and for each job that was overdue earlier and still
 * waits: GPUs kept for a job first end their running work.
 */
export function waitsOf(finished: readonly FinishedJob[], bestEffortMs: number): Waits {
  const longestRunMs = Math.max(0, ...finished.map(({ startedAt, finishedAt }) => finishedAt - startedAt));
  const jobs = finished.map(({ job: { task }, startedAt }) => ({
    waitMs: startedAt - task.arrivedAt,
    startedAt,
    overdueMs: Math.max(2 * (task.sloMs ?? 0), bestEffortMs),
    overdueAt: task.arrivedAt + Math.max(2 * (task.sloMs ?? 0), bestEffortMs),
  }));
  let [longestWaitMs, overdue, waitOverBound] = [0, 0, 0];
  for (const one of jobs) {
    longestWaitMs = Math.max(longestWaitMs, one.waitMs);
    const isBefore = (other: (typeof jobs)[number]): boolean =>
      other !== one && other.overdueAt <= one.overdueAt && other.startedAt > one.overdueAt;
    const isOverdue = one.waitMs > one.overdueMs;
    if (isOverdue) overdue += 1;
    const before = isOverdue ? jobs.filter(isBefore).length : 0;
    waitOverBound = Math.max(waitOverBound, one.waitMs / (one.overdueMs + (before + 1) * longestRunMs));
  }
  return { longestWaitMs, overdue: jobs.length === 0 ? 0 : overdue / jobs.length, waitOverBound };
}
