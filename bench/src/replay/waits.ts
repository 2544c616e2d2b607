import type { FinishedJob } from '@gpuwhisk/gpu/simulate/run-totals';

/** How long jobs waited, and the bound that FaaShare's queue states for it. */
export interface Waits {
  /** From arrival to start, ms. */
  longestWaitMs: number;
  /** Part of the jobs that waited for so long that FaaShare lets no job overtake them. */
  overdue: number;
  /** The longest wait over its bound: above 1, the bound does not hold. */
  waitOverBound: number;
}

/**
 * The bound of a job: max(2 · SLO, `bestEffortMs`), after which it is overtaken no more, and from then on the longest run of
 * the replay for each job that is overdue before it and waits, and for itself: until what runs on the GPUs that are kept
 * for it has ended.
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
