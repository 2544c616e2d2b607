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

/** By least squares, of points [x, y]: how much y grows with x; 0 where all have one x. */
export function slope(points: readonly (readonly [number, number])[]): number {
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [meanX, meanY] = [mean(points.map(([x]) => x)), mean(points.map(([, y]) => y))];
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  return spread === 0 ? 0 : points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / spread;
}
