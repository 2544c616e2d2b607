import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import { percentile } from '../statistics.js';

/** A figure over paired seeds with its 95 % bootstrap interval. */
export interface Interval {
  mean: number;
  low: number;
  high: number;
}

const resamples = 1000;

/**
 * What `statistic` makes of the means of `ours` and `theirs`, which are paired by index, with the interval in which it
 * lies for 95 % of the bootstrap samples of the pairs. Throws RangeError for no pairs or unequal numbers.
 */
export function pairedInterval(
  ours: readonly number[],
  theirs: readonly number[],
  statistic: (ours: number, theirs: number) => number,
  random: Random,
): Interval {
  if (ours.length === 0 || ours.length !== theirs.length) throw new RangeError('paired figures come in equal numbers');
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const drawn = Array.from({ length: resamples }, () => {
    let a = 0;
    let b = 0;
    for (let i = 0; i < ours.length; i += 1) {
      const at = Math.floor(randomFraction(random) * ours.length);
      a += ours[at] as number;
      b += theirs[at] as number;
    }
    return statistic(a / ours.length, b / ours.length);
  });
  return { mean: statistic(mean(ours), mean(theirs)), low: percentile(drawn, 2.5), high: percentile(drawn, 97.5) };
}

/** By which part ours is lower. */
export const reduction = (ours: number, theirs: number): number => 1 - ours / theirs;

/** Ours over theirs. */
export const ratio = (ours: number, theirs: number): number => ours / theirs;

/** Ours alone. */
export const own = (ours: number): number => ours;
