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
