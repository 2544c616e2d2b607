// Statistics of samples, and seeded choices.
import { randomFraction, type Random } from '@gpuwhisk/common/system/random';

/** The arithmetic mean; NaN for no values. */
export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The middle value (mean of the two middle ones for an even count). Throws RangeError for no values. */
export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/**
 * The value below which `percent` % of the values lie, interpolated linearly between neighbours.
 * Throws RangeError for no values.
 */
export function percentile(values: readonly number[], percent: number): number {
  if (values.length === 0) throw new RangeError('a percentile needs at least one value');
  const sorted = [...values].sort((a, b) => a - b);
  const position = ((sorted.length - 1) * percent) / 100;
  const below = sorted[Math.floor(position)] as number;
  const above = sorted[Math.ceil(position)] as number;
  return below + (above - below) * (position - Math.floor(position));
}

/** The smallest and the largest value. Throws RangeError for no values. */
export function spread(values: readonly number[]): readonly [number, number] {
  return [percentile(values, 0), percentile(values, 100)];
}

/** Least-squares slope of y over x for points [x, y]; 0 if all points have the same x. */
export function slope(points: readonly (readonly [number, number])[]): number {
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [meanX, meanY] = [mean(points.map(([x]) => x)), mean(points.map(([, y]) => y))];
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  return spread === 0 ? 0 : points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / spread;
}

/** Uniform integers from 0 to `count` − 1, the same for the same seed (Marsaglia's xorshift, 32 bits). */
export function seededChoice(seed: number, count: number): () => number {
  // Xorshift never leaves the state zero.
  let state = (seed * 0x9e3779b1) | 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return Math.floor(((state >>> 0) / 2 ** 32) * count);
  };
}

/** An item chosen uniformly; takes one number from `random`. Throws RangeError if there are no items. */
export function randomItem<Item>(items: readonly Item[], random: Random): Item {
  const at = Math.floor(randomFraction(random) * items.length);
  if (at >= items.length) throw new RangeError('a choice needs at least one item');
  return items[at] as Item;
}

/** A figure over paired seeds with its 95 % bootstrap interval. */
export interface Interval {
  mean: number;
  low: number;
  high: number;
}

const resamples = 1000;

/**
 * `statistic` of the means of `ours` and `theirs`, which are paired by index, with its 95 % bootstrap interval over
 * pairs. Throws RangeError for no pairs or unequal numbers.
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

/** Fraction by which ours is lower than theirs. */
export const reduction = (ours: number, theirs: number): number => 1 - ours / theirs;

/** Ours over theirs. */
export const ratio = (ours: number, theirs: number): number => ours / theirs;

/** Ours, without a comparison. */
export const own = (ours: number): number => ours;
