import { subQueueDefaults } from '@gpuwhisk/gpu/algorithms/faashare/sub-queue-plan';
import { shareAnswers, type ShareAnswer, type ShareCounts } from '@gpuwhisk/gpu/share/share-counts';
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
  /**
   * Mean over the jobs of solo time over the time from start to result: 1 if no job is slowed down. It says nothing of
   * time in the queue; solo work over the makespan, another reading of STP, is the makespan once more.
   */
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

/** GPUs that overdue jobs may always take. */
export function lanesOf(gpus: number): number {
  return Math.max(1, gpus * subQueueDefaults.overduePart);
}

/**
 * The metrics of a replay in which at least one job has finished. `withSlo`: jobs with an SLO; `bestEffortMs` and
 * `lanes`: as in `waitsOf`.
 */
export function metricsOf(
  { finished, refused, totals, shares }: ReplayRun,
  withSlo: number,
  bestEffortMs: number,
  lanes: number,
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
    stp: mean(finished.map(({ job, startedAt, finishedAt }) => job.soloMs / (finishedAt - startedAt))),
    violations: withSlo === 0 ? 0 : (late.length + refused.length) / withSlo,
    utilisation: totals.usedMs / totals.gpuMs,
    fragmentation: totals.freeMiBMs === 0 ? 0 : totals.strandedMiBMs / totals.freeMiBMs,
    gpuHours: totals.occupiedMs / 3_600_000,
    tableHitShare: partOf(shares, 'hit'),
    tableNearShare: partOf(shares, 'near'),
    tableNearRegret: shares.near.fillingMs === 0 ? 0 : shares.near.chosenMs / shares.near.fillingMs - 1,
    ...waitsOf(finished, bestEffortMs, lanes),
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
 * Waiting times of finished jobs. FaaShare's queue lets no job overtake an overdue one: best effort is overdue after
 * max(4 · solo time, `bestEffortMs`), and a strict job becomes best effort when its SLO has passed. From then on the bound
 * is stated as work ahead: the runs of the jobs that were overdue earlier and still wait, on `lanes` GPUs, and the
 * longest run of the replay, which the GPU that is kept for the job may have to end first.
 */
export function waitsOf(finished: readonly FinishedJob[], bestEffortMs: number, lanes: number): Waits {
  const longestRunMs = Math.max(0, ...finished.map(({ startedAt, finishedAt }) => finishedAt - startedAt));
  const jobs = finished.map(({ job: { task }, startedAt, finishedAt }) => {
    const overdueMs = Math.max(task.sloMs ?? 0, 4 * (task.soloMs ?? 0), bestEffortMs);
    const waitMs = startedAt - task.arrivedAt;
    return { waitMs, startedAt, runMs: finishedAt - startedAt, overdueMs, overdueAt: task.arrivedAt + overdueMs };
  });
  let [longestWaitMs, overdue, waitOverBound] = [0, 0, 0];
  for (const one of jobs) {
    longestWaitMs = Math.max(longestWaitMs, one.waitMs);
    const isBefore = (other: (typeof jobs)[number]): boolean =>
      other !== one && other.overdueAt <= one.overdueAt && other.startedAt > one.overdueAt;
    const isOverdue = one.waitMs > one.overdueMs;
    if (isOverdue) overdue += 1;
    const aheadMs = isOverdue ? jobs.filter(isBefore).reduce((sum, { runMs }) => sum + runMs, 0) : 0;
    waitOverBound = Math.max(waitOverBound, one.waitMs / (one.overdueMs + longestRunMs + aheadMs / lanes));
  }
  return { longestWaitMs, overdue: jobs.length === 0 ? 0 : overdue / jobs.length, waitOverBound };
}

/** The part of all choices with this answer, 0 to 1; 0 where there are none. */
function partOf(counts: ShareCounts, answer: ShareAnswer): number {
  const all = shareAnswers.reduce((sum, one) => sum + counts[one].choices, 0);
  return all === 0 ? 0 : counts[answer].choices / all;
}
