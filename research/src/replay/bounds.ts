/** A job as a lower bound sees it. Times in ms. */
export interface BoundedJob {
  arrivedAt: number;
  /** Solo time. */
  lengthMs: number;
  /** The least time of a whole GPU that it takes. */
  workMs: number;
}

/** What no schedule goes below. */
export interface LowerBounds {
  makespanMs: number;
  /** Of the mean completion time. */
  jctMs: number;
}

/**
 * Lower bounds of any schedule on `gpus` GPUs. One machine that is as fast as all of them, may interrupt jobs and serves
 * the shortest remaining work first ends no job later in the mean (SRPT is optimal on one machine: Schrage, 1968) and all
 * jobs no later than they; and no job ends before its solo time. Starts, memory and contention count for nothing.
 */
export function lowerBounds(jobs: readonly BoundedJob[], gpus: number): LowerBounds {
  const coming = [...jobs].sort((a, b) => a.arrivedAt - b.arrivedAt);
  const first = coming[0]?.arrivedAt ?? 0;
  const alone = coming.map(({ lengthMs }) => lengthMs);
  const lastAlone = Math.max(0, ...coming.map(({ arrivedAt, lengthMs }) => arrivedAt + lengthMs - first));
  /** Rising by the work that is left. */
  const left: { arrivedAt: number; workMs: number }[] = [];
  let [now, next, completionMs] = [first, 0, 0];
  while (next < coming.length || left.length > 0) {
    const arriving = coming[next];
    const serving = left[0];
    const endsAt = serving === undefined ? Infinity : now + serving.workMs / gpus;
    if (arriving !== undefined && (serving === undefined || arriving.arrivedAt <= endsAt)) {
      if (serving !== undefined) serving.workMs -= (arriving.arrivedAt - now) * gpus;
      now = arriving.arrivedAt;
      next += 1;
      const { workMs } = arriving;
      const place = left.findIndex((one) => one.workMs > workMs);
      left.splice(place < 0 ? left.length : place, 0, { arrivedAt: now, workMs });
    } else if (serving !== undefined) {
      left.shift();
      now = endsAt;
      completionMs += now - serving.arrivedAt;
    }
  }
  const mean = (sum: number): number => (jobs.length === 0 ? 0 : sum / jobs.length);
  return {
    makespanMs: Math.max(lastAlone, now - first),
    jctMs: Math.max(mean(completionMs), mean(alone.reduce((sum, ms) => sum + ms, 0))),
  };
}
