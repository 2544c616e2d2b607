/** When a run computed, ms on one clock. */
export interface RunInterval {
  startMs: number;
  endMs: number;
}

/** Part of a run, at least, that each of the others has to be there for. */
const leastCover = 0.8;

/** By member, those of its runs that every other member ran beside, but for the gaps between one run and the next. */
export function steadyRuns(runs: readonly (readonly RunInterval[])[]): RunInterval[][] {
  return runs.map((own, member) =>
    own.filter((run) => runs.every((others, other) => other === member || coverOf(run, others) >= leastCover)),
  );
}

/** The part of a run that others overlap, 0 to 1; 0 for one that took no time. */
function coverOf(run: RunInterval, others: readonly RunInterval[]): number {
  const tookMs = run.endMs - run.startMs;
  if (tookMs <= 0) return 0;
  let overlapMs = 0;
  for (const { startMs, endMs } of others) {
    overlapMs += Math.max(0, Math.min(run.endMs, endMs) - Math.max(run.startMs, startMs));
  }
  return overlapMs / tookMs;
}

/** Runs, and time of them, that a typical time is taken from: the clock of records ticks in whole milliseconds. */
const [leastRuns, leastTotalMs, enoughRuns] = [3, 150, 10];

/** Whether runs are enough to tell what is typical of them. */
export function isTelling(runs: readonly RunInterval[]): boolean {
  if (runs.length >= enoughRuns) return true;
  return runs.length >= leastRuns && runs.reduce((sum, run) => sum + run.endMs - run.startMs, 0) >= leastTotalMs;
}

/** The mean of the middle half of the times that runs took, ms. Throws RangeError for none. */
export function typicalMs(runs: readonly RunInterval[]): number {
  if (runs.length === 0) throw new RangeError('there is no run');
  const times = runs.map(({ startMs, endMs }) => endMs - startMs).sort((one, other) => one - other);
  const cut = times.length >> 2;
  const middle = times.slice(cut, times.length - cut);
  return middle.reduce((sum, time) => sum + time, 0) / middle.length;
}
