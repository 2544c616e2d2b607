// The rival: every function's containers are kept for a fixed time after their last run.
import type { DayFunction } from './arrivals.js';
import { dayMs } from './arrivals.js';
import type { SetCosts } from './costs.js';

/** What a day took. */
export interface DayUse {
  /** Sum over all calls of the time until the function began, s. */
  waitedS: number;
  /** Memory × time, GiB × s. */
  gibS: number;
}

type Interval = readonly [fromMs: number, untilMs: number];

/**
 * A day in which each container stays for `keptMs` after its last run. A call waits for a new container, which imports the modules, or for
 * the next one that ends its run, whichever is ready first; nothing else delays it.
 */
export function keepAlive(functions: readonly DayFunction[], costs: readonly SetCosts[], keptMs: number): DayUse {
  let waitedMs = 0;
  let mibMs = 0;
  for (const [set, cost] of costs.entries()) {
    const intervals: Interval[] = [];
    for (const one of functions.filter((each) => each.set === set)) {
      const kept = keep(one, cost.importedMs, keptMs);
      waitedMs += kept.waitedMs;
      for (const interval of kept.containers) intervals.push(interval);
    }
    mibMs += intervals.reduce((sum, [fromMs, untilMs]) => sum + (untilMs - fromMs), 0) * cost.plainMiB;
    mibMs += covered(intervals) * cost.plainSharedMiB;
  }
  return { waitedS: waitedMs / 1000, gibS: mibMs / 1024 / 1000 };
}

/** The day of the longest time kept that takes no more memory × time; that time in ms, too. */
export function bestKeepAlive(
  functions: readonly DayFunction[],
  costs: readonly SetCosts[],
  gibS: number,
): DayUse & { keptMs: number } {
  let [lowMs, highMs] = [0, dayMs];
  if (keepAlive(functions, costs, highMs).gibS <= gibS) lowMs = highMs;
  while (highMs - lowMs > 1000) {
    const middleMs = (lowMs + highMs) / 2;
    if (keepAlive(functions, costs, middleMs).gibS <= gibS) lowMs = middleMs;
    else highMs = middleMs;
  }
  return { ...keepAlive(functions, costs, lowMs), keptMs: lowMs };
}

/** The waits of a function's calls, and the times of its containers. */
function keep(
  { callsMs, durationMs }: DayFunction,
  importedMs: number,
  keptMs: number,
): { waitedMs: number; containers: Interval[] } {
  const containers: Interval[] = [];
  let waitedMs = 0;
  let live: { fromMs: number; freeMs: number }[] = [];
  const end = ({ fromMs, freeMs }: { fromMs: number; freeMs: number }): void => {
    containers.push([fromMs, Math.min(dayMs, freeMs + keptMs)]);
  };
  for (const atMs of callsMs) {
    for (const one of live) if (one.freeMs + keptMs < atMs) end(one);
    live = live.filter(({ freeMs }) => freeMs + keptMs >= atMs);
    const idle = live.filter(({ freeMs }) => freeMs <= atMs);
    const first = live.reduce((least, { freeMs }) => Math.min(least, freeMs), Infinity);
    // The one used last, so that others reach their end.
    const lastMs = idle.reduce((most, { freeMs }) => Math.max(most, freeMs), -Infinity);
    const taken = live.find(({ freeMs }) => freeMs === (idle.length > 0 ? lastMs : first));
    const startMs = taken === undefined ? Infinity : Math.max(atMs, taken.freeMs);
    if (taken !== undefined && startMs <= atMs + importedMs) {
      waitedMs += startMs - atMs;
      taken.freeMs = startMs + durationMs;
    } else {
      waitedMs += importedMs;
      live.push({ fromMs: atMs, freeMs: atMs + importedMs + durationMs });
    }
  }
  for (const one of live) end(one);
  return { waitedMs, containers };
}

/** Time in which there is at least one of the intervals, ms. */
function covered(intervals: readonly Interval[]): number {
  let sumMs = 0;
  let endMs = -Infinity;
  for (const [fromMs, untilMs] of [...intervals].sort(([one], [other]) => one - other)) {
    sumMs += Math.max(0, untilMs - Math.max(fromMs, endMs));
    endMs = Math.max(endMs, untilMs);
  }
  return sumMs;
}
