import { squaredDistance } from '../numeric/scaling.js';

const neighbours = 8;
/** Deviations from what the neighbours say that are still believed, in robust standard deviations. */
const believed = 6;
/** Of a normal distribution: standard deviation over the median distance from the median. */
const normalRatio = 1.4826;

/**
 * Targets of which those far from what was measured in much the same place are moved to the edge of what is believed:
 * six robust standard deviations (Hampel's identifier) from the median of the eight nearest rows. What is usual is
 * taken from all rows, so that a set that varies much from row to row keeps its extremes. With fewer than ten rows
 * nothing is moved. O(n²) in the number of rows.
 */
export function boundOutliers(rows: readonly Float64Array[], targets: Float64Array): Float64Array {
  if (rows.length < neighbours + 2) return targets.slice();
  const expected = rows.map((row, i) => medianOfNearest(row, i, rows, targets));
  const distances = targets.map((target, i) => Math.abs(target - expected[i]!));
  const edge = believed * normalRatio * median(distances);
  return targets.map((target, i) => Math.min(Math.max(target, expected[i]! - edge), expected[i]! + edge));
}

function medianOfNearest(
  row: Float64Array,
  self: number,
  rows: readonly Float64Array[],
  targets: Float64Array,
): number {
  const distances = Float64Array.from(rows, (other) => squaredDistance(row, other));
  distances[self] = Infinity;
  // Rows as far as the eighth take part, too: the choice among repeated measurements is not left to their order.
  const reach = distances.slice().sort()[neighbours - 1]!;
  return median(targets.filter((_, i) => distances[i]! <= reach));
}

function median(values: Float64Array): number {
  const sorted = values.slice().sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
