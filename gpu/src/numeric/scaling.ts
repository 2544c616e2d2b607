/** Brings features to one scale: mean 0 and standard deviation 1; a feature that does not vary becomes 0. */
export interface Scaling {
  means: Float64Array;
  /** Reciprocals of the standard deviations; 0 for a feature that does not vary. */
  factors: Float64Array;
}

/** The scaling of `rows`. Throws RangeError for no rows. */
export function scalingOf(rows: readonly ArrayLike<number>[]): Scaling {
  if (rows.length === 0) throw new RangeError('There are no rows to take a scale from.');
  const width = rows[0]!.length;
  const means = new Float64Array(width);
  const factors = new Float64Array(width);
  for (let at = 0; at < width; at += 1) {
    const column = rows.map((row) => row[at]!);
    const mean = column.reduce((sum, value) => sum + value, 0) / rows.length;
    const variance = column.reduce((sum, value) => sum + (value - mean) ** 2, 0) / rows.length;
    means[at] = mean;
    factors[at] = Math.sqrt(variance) > 1e-9 * Math.max(1, Math.abs(mean)) ? 1 / Math.sqrt(variance) : 0;
  }
  return { means, factors };
}

/** A row on that scale. */
export function scaled(row: ArrayLike<number>, { means, factors }: Scaling): Float64Array {
  const width = means.length;
  const there = new Float64Array(width);
  for (let at = 0; at < width; at += 1) there[at] = (row[at]! - means[at]!) * factors[at]!;
  return there;
}

/** Square of the distance between two rows. */
export function squaredDistance(one: Float64Array, other: Float64Array): number {
  let squared = 0;
  for (let at = 0; at < one.length; at += 1) squared += (one[at]! - other[at]!) ** 2;
  return squared;
}
