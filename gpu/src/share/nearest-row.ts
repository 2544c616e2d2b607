// The row of the quota table that is most like a set, by the cheapest assignment of jobs.
import type { WorkloadFeatures } from '../predict/slowdown-predictor.js';
import type { QuotaRow } from './quota-row.js';

/** A row further away than this, as the mean distance of matched jobs in standard deviations, stands for no other set. */
const maxDistance = 1;

/** What features of one place differ by is measured in their deviation, but no finer than this. */
const leastDeviation = 0.1;

const dimensions = 3;

/** A row that stands for a set, and by job of the set the job of the row. */
interface NearRow {
  row: QuotaRow;
  matched: Int32Array;
  distance: number;
}

interface Indexed {
  row: QuotaRow;
  features: Float64Array;
  sums: Float64Array;
}

/** The rows of one kind of GPU by what their jobs are like. */
export class NearestRows {
  private readonly rows = new Map<QuotaRow, Indexed>();
  private readonly totals = new Float64Array(dimensions);
  private readonly squares = new Float64Array(dimensions);
  private jobs = 0;

  /** A row with a job that was not profiled is left out. */
  add(row: QuotaRow): void {
    const features = flat(row.jobs.map((job) => job.features));
    if (features === undefined || this.rows.has(row)) return;
    const sums = new Float64Array(dimensions);
    for (let at = 0; at < features.length; at += 1) sums[at % dimensions]! += features[at]!;
    this.rows.set(row, { row, features, sums });
    this.count(features, 1);
  }

  delete(row: QuotaRow): void {
    const known = this.rows.get(row);
    if (known === undefined) return;
    this.rows.delete(row);
    this.count(known.features, -1);
  }

  /** The row most like `set` of those that `isFit` lets pass; undefined if none is near enough. */
  find(set: readonly (WorkloadFeatures | undefined)[], isFit: (near: NearRow) => boolean): NearRow | undefined {
    const features = flat(set);
    if (features === undefined) return undefined;
    const scale = this.scale();
    const sums = new Float64Array(dimensions);
    for (let at = 0; at < features.length; at += 1) sums[at % dimensions]! += features[at]!;
    const able: Indexed[] = [];
    const bounds: number[] = [];
    let first = 0;
    for (const one of this.rows.values()) {
      if (one.row.jobs.length !== set.length) continue;
      // No matching comes closer than the means of the sets are.
      const bound = distance(sums, 0, one.sums, 0, scale) / set.length;
      if (bound > maxDistance) continue;
      if (able.length > 0 && bound < bounds[first]!) first = able.length;
      able.push(one);
      bounds.push(bound);
    }
    // The likeliest comes first: the nearer the best so far is, the fewer are matched.
    const costs = new Float64Array(set.length * set.length);
    let nearest: NearRow | undefined;
    for (let step = 0; step < able.length; step += 1) {
      const at = step === 0 ? first : step === first ? 0 : step;
      const bound = nearest?.distance ?? maxDistance + Number.EPSILON;
      if (bounds[at]! >= bound) continue;
      const { row, features: theirs } = able[at]!;
      if (fillCosts(costs, features, theirs, set.length, scale) / set.length >= bound) continue;
      const near = matching(row, costs, set.length);
      if (near.distance < bound && isFit(near)) nearest = near;
    }
    return nearest;
  }

  private count(features: Float64Array, sign: 1 | -1): void {
    for (let at = 0; at < features.length; at += 1) {
      this.totals[at % dimensions]! += sign * features[at]!;
      this.squares[at % dimensions]! += sign * features[at]! * features[at]!;
    }
    this.jobs += (sign * features.length) / dimensions;
  }

  /** One over the deviation of each feature. */
  private scale(): Float64Array {
    return this.totals.map((total, at) => {
      const mean = total / Math.max(1, this.jobs);
      const variance = this.squares[at]! / Math.max(1, this.jobs) - mean * mean;
      return 1 / Math.max(leastDeviation, Math.sqrt(Math.max(0, variance)));
    });
  }
}

/** The distance of every job of the set to every job of a row; gives the sum of the least of each, which no matching is below. */
function fillCosts(
  costs: Float64Array,
  features: Float64Array,
  theirs: Float64Array,
  size: number,
  scale: Float64Array,
): number {
  let sum = 0;
  for (let one = 0; one < size; one += 1) {
    let least = Infinity;
    for (let other = 0; other < size; other += 1) {
      const cost = distance(features, one * dimensions, theirs, other * dimensions, scale);
      costs[one * size + other] = cost;
      if (cost < least) least = cost;
    }
    sum += least;
  }
  return sum;
}

function matching(row: QuotaRow, costs: Float64Array, size: number): NearRow {
  const matched = cheapestAssignment(costs, size);
  let total = 0;
  for (let one = 0; one < size; one += 1) total += costs[one * size + matched[one]!]!;
  return { row, matched, distance: total / size };
}

/** The features of a set, or undefined if a job has none. An absent figure counts as 0, so that two jobs without it match. */
function flat(set: readonly (WorkloadFeatures | undefined)[]): Float64Array | undefined {
  const features = new Float64Array(set.length * dimensions);
  for (const [at, one] of set.entries()) {
    if (one === undefined) return undefined;
    features.set([one.smUtil, one.dramUtil ?? 0, one.l2Util ?? 0], at * dimensions);
  }
  return features;
}

function distance(one: Float64Array, at: number, other: Float64Array, otherAt: number, scale: Float64Array): number {
  let squared = 0;
  for (let k = 0; k < dimensions; k += 1) {
    const difference = (one[at + k]! - other[otherAt + k]!) * scale[k]!;
    squared += difference * difference;
  }
  return Math.sqrt(squared);
}

/**
 * The assignment of rows to columns of a square matrix (row by row) that costs least: by row, its column. The
 * Hungarian method with potentials, in O(size³).
 */
export function cheapestAssignment(costs: Float64Array, size: number): Int32Array {
  // Rows and columns are counted from 1; column 0 stands for the row that is being placed.
  const rowPotential = new Float64Array(size + 1);
  const columnPotential = new Float64Array(size + 1);
  const rowOf = new Int32Array(size + 1);
  const cameFrom = new Int32Array(size + 1);
  for (let row = 1; row <= size; row += 1) {
    rowOf[0] = row;
    let column = 0;
    const slack = new Float64Array(size + 1).fill(Infinity);
    const reached = new Uint8Array(size + 1);
    do {
      reached[column] = 1;
      const current = rowOf[column]!;
      let step = Infinity;
      let next = 0;
      for (let other = 1; other <= size; other += 1) {
        if (reached[other]) continue;
        const reduced = costs[(current - 1) * size + other - 1]! - rowPotential[current]! - columnPotential[other]!;
        if (reduced < slack[other]!) [slack[other], cameFrom[other]] = [reduced, column];
        if (slack[other]! < step) [step, next] = [slack[other]!, other];
      }
      for (let other = 0; other <= size; other += 1) {
        if (reached[other]) {
          rowPotential[rowOf[other]!]! += step;
          columnPotential[other]! -= step;
        } else slack[other]! -= step;
      }
      column = next;
    } while (rowOf[column] !== 0);
    while (column !== 0) {
      rowOf[column] = rowOf[cameFrom[column]!]!;
      column = cameFrom[column]!;
    }
  }
  const columnOf = new Int32Array(size);
  for (let column = 1; column <= size; column += 1) columnOf[rowOf[column]! - 1] = column - 1;
  return columnOf;
}
