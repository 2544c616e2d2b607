// Arrivals in bursts, and the progress of a training job beside them.
import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import { meanOf } from '../statistics.js';

/** Parameters of arrivals in bursts. */
export interface Bursts {
  requests: number;
  /** From the first to the last interval's end, ms. */
  spanMs: number;
  /** Intervals of equal length, each with a rate of its own. */
  intervals: number;
  /** Rates are Erlang distributed with so many stages: the fewer, the more they differ. */
  stages: number;
}

/** Times of arrivals from 0 to `spanMs`, in order, ms. */
export function burstTimes({ requests, spanMs, intervals, stages }: Bursts, random: Random): number[] {
  const exponential = (): number => -Math.log(1 - randomFraction(random));
  const rates = Array.from({ length: intervals }, () =>
    Array.from({ length: stages }, exponential).reduce((sum, value) => sum + value, 0),
  );
  const all = meanOf(rates) * intervals;
  const intervalMs = spanMs / intervals;
  const times = Array.from({ length: requests }, () => {
    let left = randomFraction(random) * all;
    const at = rates.findIndex((rate) => (left -= rate) < 0);
    return ((at < 0 ? intervals - 1 : at) + randomFraction(random)) * intervalMs;
  });
  return times.sort((one, other) => one - other);
}

/** The rates of a job in each whole second between two times, by the ends of its steps (ms): steps per second. */
export function ratesBySecond(stepEnds: readonly number[], fromMs: number, toMs: number): number[] {
  const seconds = Math.floor((toMs - fromMs) / 1000);
  const progress = Array.from({ length: seconds + 1 }, (_, second) => stepsUntil(stepEnds, fromMs + second * 1000));
  return progress.slice(1).map((steps, second) => steps - (progress[second] ?? NaN));
}

/** Steps until `atMs`, the part of the step under way included. NaN before the first and after the last end. */
function stepsUntil(stepEnds: readonly number[], atMs: number): number {
  const next = stepEnds.findIndex((end) => end > atMs);
  const [before, after] = [stepEnds[next - 1], stepEnds[next]];
  return before === undefined || after === undefined ? NaN : next - 1 + (atMs - before) / (after - before);
}

/** The length of the longest series of values that are below `least`. */
export function longestBelow(values: readonly number[], least: number): number {
  let [longest, length] = [0, 0];
  for (const value of values) {
    length = value < least ? length + 1 : 0;
    longest = Math.max(longest, length);
  }
  return longest;
}
