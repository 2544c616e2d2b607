// INFless's scaling: instances come with load at once, and stay for as long as the function's idle times say.
import type { FunctionState } from '@gpuwhisk/gpu/view/view';
import { countByArrivals, reactiveDefaults } from '@gpuwhisk/gpu/stages/scale/reactive';
import { idleMs } from '@gpuwhisk/gpu/stages/scale/scale';
import type { Scale, Scaling } from '@gpuwhisk/gpu/stages/scale/scale';
import { keyOf, stayingInstances } from '@gpuwhisk/gpu/stages/scale/wanted';

/** Settings of `infless`. */
export const inflessDefaults = {
  windowS: 1,
  busy: 1,
  /** Seconds that a counted minute lasts: below 60 only where a trace is played faster than it was recorded. */
  minuteS: 60,
  /** The window of recent idle times, minutes; the other one is all that is counted, a day. */
  shortMinutes: 60,
};

/** Percentiles of idle times: an instance is loaded from the first to the second (Dilu's INFless+). */
const [headPart, tailPart] = [0.05, 0.9];
/** How long an instance is kept while no idle time is known, minutes, as serverless platforms do. */
const unknownMinutes = 10;
/** Weight of the idle times of the day (INFless, ASPLOS 2022, section 3.5). */
const longWeight = 0.5;

/** Idle times between which an instance is loaded, minutes. */
interface Kept {
  minute: number;
  from: number;
  until: number;
  /** Minutes since the last request; Infinity: none is known. */
  idle: number;
}

/**
 * As many instances as the arrivals of the last seconds keep busy; others stay for the keep-alive time, and one is loaded from
 * the pre-warm time on: means of a percentile of the idle times of the day and of the last hour (INFless, ASPLOS 2022, section
 * 3.5, with the percentiles of Dilu's INFless+). Idle times are minutes without requests between two with some.
 */
export function inflessScale({ minuteS, shortMinutes, ...rest }: typeof inflessDefaults): Scale {
  const countOf = countByArrivals({ ...reactiveDefaults, ...rest });
  // A day of counts is read once a minute for each function.
  const known = new WeakMap<FunctionState['arrivals'], Kept>();
  const keptOf = ({ arrivals }: FunctionState, at: number): Kept => {
    const minute = Math.floor(at / (minuteS * 1000));
    const before = known.get(arrivals);
    if (before?.minute === minute) return before;
    // The minute of `at` is not over.
    const kept = keptBy(arrivals.byMinute(at).subarray(0, -1), shortMinutes, minute);
    known.set(arrivals, kept);
    return kept;
  };
  return (view) => {
    const { at, functions = [] } = view;
    const left = stayingInstances(view);
    const launch: Scaling['launch'][number][] = [];
    const retire: Scaling['retire'][number][] = [];
    for (const of of functions) {
      const there = left.get(keyOf(of.task)) ?? [];
      left.delete(keyOf(of.task));
      const { from, until, idle } = keptOf(of, at);
      const ahead = idle >= from && idle < until ? 1 : 0;
      const count = Math.max(countOf(of, at), ahead);
      const reason = `${count} wanted for its arrivals and by its idle times, ${there.length} there`;
      if (count > there.length) launch.push({ of, count: count - there.length, reason });
      const spare = there.filter((one) => one.state === 'idle' && idleMs(one, at) >= until * minuteS * 1000);
      const longest = spare.toSorted((one, other) => idleMs(other, at) - idleMs(one, at));
      for (const { id } of longest.slice(0, Math.max(0, there.length - count))) {
        retire.push({ instance: id, reason: `not wanted, and idle for ${until * minuteS} s` });
      }
    }
    // A function that is not in the view was not called for long.
    for (const one of [...left.values()].flat()) {
      if (one.state === 'idle') retire.push({ instance: one.id, reason: 'its function was not called for long' });
    }
    return { launch, retire };
  };
}

function keptBy(counts: Uint32Array, shortMinutes: number, minute: number): Kept {
  const last = counts.findLastIndex((count) => count > 0);
  const idle = last < 0 ? Infinity : counts.length - 1 - last;
  const long = idleTimes(counts);
  if (long.length === 0) return { minute, from: 0, until: unknownMinutes, idle };
  const recent = idleTimes(counts.subarray(-shortMinutes));
  const short = recent.length === 0 ? long : recent;
  const mixed = (part: number): number => longWeight * quantile(long, part) + (1 - longWeight) * quantile(short, part);
  return { minute, from: mixed(headPart), until: mixed(tailPart), idle };
}

/** Lengths of runs of minutes without requests between two with some, the shortest first. */
function idleTimes(counts: Uint32Array): number[] {
  const times: number[] = [];
  let last: number | undefined;
  for (const [at, count] of counts.entries()) {
    if (count === 0) continue;
    if (last !== undefined && at - last > 1) times.push(at - last - 1);
    last = at;
  }
  return times.sort((one, other) => one - other);
}

/** The value that `part` of them lie below, interpolated. */
function quantile(sorted: readonly number[], part: number): number {
  const position = part * (sorted.length - 1);
  const below = sorted[Math.floor(position)] ?? 0;
  const above = sorted[Math.ceil(position)] ?? 0;
  return below + (above - below) * (position - Math.floor(position));
}
