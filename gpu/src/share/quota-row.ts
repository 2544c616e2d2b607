// Rows of the quota table: their keys, measurements and stored form, and the row that is most like a set.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- arrays have an element for each job of a row or set, matrices one for each pair */
import { z } from 'zod';
import { kindName, type GpuKind } from '@gpuwhisk/common/gpu';
import type { WorkloadFeatures } from '../predict/slowdown-predictor.js';
import type { QuotaJob } from './quotas.js';

/** A job of a row. */
interface RowJob {
  id: string;
  function: string;
  version: string;
  /** Absent: it was not profiled, and the row stands for no other set. */
  features?: WorkloadFeatures;
}

/** Shares that a set was measured with. */
export interface RowPoint {
  /** Percent, by job. */
  shares: readonly number[];
  /** The last measurements: slowdowns by job. */
  samples: (readonly number[])[];
  /** The median of the samples, by job; of two, the lesser. */
  slowdowns: readonly number[];
}

/** What is known of a set on one kind of GPU. */
export interface QuotaRow extends GpuKind {
  /** Of the driver that it was measured with. */
  driverMajor: number;
  /** In the order of the key. */
  jobs: readonly RowJob[];
  /** The one with the least sum of slowdowns first. */
  points: RowPoint[];
  /** Whether a search has ended with nothing more to gain. */
  searched: boolean;
}

/** Points of a row, at most. */
const maxPoints = 64;
const maxSamples = 5;
/** Shares that differ by less are one, percent. */
const sameShare = 0.5;

/**
 * Adds a measurement to a row. One of shares that are known joins their last ones, whose median counts, so that a
 * single bad one among several does no harm.
 */
export function addMeasurement(row: QuotaRow, shares: readonly number[], slowdowns: readonly number[]): void {
  const known = row.points.findIndex((point) => point.shares.every((share, at) => share === shares[at]));
  const [before] = known < 0 ? [] : row.points.splice(known, 1);
  const samples = [...(before?.samples ?? []), slowdowns].slice(-maxSamples);
  const point = {
    shares: before?.shares ?? shares,
    samples,
    slowdowns: slowdowns.map((_, job) => median(samples.map((sample) => sample[job]!))),
  };
  // The worst makes way.
  if (row.points.length >= maxPoints) row.points.pop();
  const behind = row.points.findIndex((other) => objective(other) > objective(point));
  row.points.splice(behind < 0 ? row.points.length : behind, 0, point);
}

/** The sum of a point's slowdowns. */
function objective({ slowdowns }: RowPoint): number {
  let sum = 0;
  for (const slowdown of slowdowns) sum += slowdown;
  return sum;
}

/** The best point whose slowdowns all are within `bounds`, with the shares that are fixed, fractions; all weigh the same. */
export function bestWithin(
  { points }: QuotaRow,
  bounds: readonly number[],
  fixed: readonly (number | undefined)[],
): RowPoint | undefined {
  return points.find((point) => isWithin(point, bounds, fixed));
}

function isWithin(
  { shares, slowdowns }: RowPoint,
  bounds: readonly number[],
  fixed: readonly (number | undefined)[],
): boolean {
  for (let job = 0; job < bounds.length; job += 1) {
    const own = fixed[job];
    if (slowdowns[job]! > bounds[job]!) return false;
    if (own !== undefined && Math.abs(shares[job]! - own * 100) >= sameShare) return false;
  }
  return true;
}

/** Orders of jobs with one id that are tried, at most. */
const maxOrders = 24;

/**
 * The point with the least sum of slowdowns, weighted by job (absent: 1), of those within `bounds` and with the shares that
 * are fixed, fractions; and the place in the set of each job of the point. Jobs of one id may take each other's parts: with a
 * fixed share, the order by budgets may leave a job no measured share. Arguments by job are in the set's order.
 */
export function bestOfOrders(
  { points }: QuotaRow,
  { ids, places }: Pick<OrderedSet, 'ids' | 'places'>,
  bounds: readonly number[],
  fixed: readonly (number | undefined)[],
  weights: readonly number[],
): { point: RowPoint; places: readonly number[] } | undefined {
  const isTold = fixed.length > 0 && places.some((place, at) => fixed[place] !== undefined && isTwin(ids, at));
  let least = Infinity;
  let best: { point: RowPoint; places: readonly number[] } | undefined;
  for (const order of isTold ? ordersOf(ids, places) : [places]) {
    const [theirs, theirFixed] = [order.map((place) => bounds[place]!), order.map((place) => fixed[place])];
    for (const point of points) {
      if (!isWithin(point, theirs, theirFixed)) continue;
      let sum = 0;
      for (let at = 0; at < order.length; at += 1) sum += (weights[order[at]!] ?? 1) * point.slowdowns[at]!;
      if (sum < least) [least, best] = [sum, { point, places: order }];
    }
  }
  return best;
}

function isTwin(ids: readonly string[], at: number): boolean {
  return ids[at] === ids[at - 1] || ids[at] === ids[at + 1];
}

/** The orders in which jobs of one id have changed places, the given one first. */
function ordersOf(ids: readonly string[], places: readonly number[]): number[][] {
  const found: number[][] = [];
  const order: number[] = [];
  const extend = (): void => {
    if (found.length >= maxOrders) return;
    const at = order.length;
    if (at === places.length) {
      found.push([...order]);
      return;
    }
    for (const [other, place] of places.entries()) {
      if (ids[other] !== ids[at] || order.includes(place)) continue;
      order.push(place);
      extend();
      order.pop();
    }
  };
  extend();
  return found;
}

/** The lower of the two in the middle: what disturbs a run makes it longer. */
function median(values: number[]): number {
  values.sort((one, other) => one - other);
  return values[(values.length - 1) >> 1]!;
}

/** Batches up to a power of two are one: 1, 2, 3–4, 5–8 and so on. */
function batchBucket(batch: number): number {
  return batch <= 1 ? 1 : 2 ** (32 - Math.clz32(Math.ceil(batch) - 1));
}

/** What a table calls a job. */
export function jobId({ function: name, version, batch }: QuotaJob): string {
  return `${name}@${version}#${batchBucket(batch)}`;
}

/** What a table calls a row. */
export function rowKey(row: GpuKind & { jobs: readonly { id: string }[] }): string {
  return [kindName(row), ...row.jobs.map(({ id }) => id)].join(' ');
}

/** A set in a table's order. */
interface OrderedSet {
  key: string;
  ids: readonly string[];
  /** By place in that order, the place in the set as it was given. */
  places: readonly number[];
}

/** Brings a set into a table's order: by id, and jobs of one id by `rank`, the least first. */
export function ordered(set: readonly QuotaJob[], gpu: GpuKind, rank: readonly number[]): OrderedSet {
  const unsorted = set.map(jobId);
  const places: number[] = [];
  // Insertion: sets are small, and this is on the way of every decision.
  for (let place = 0; place < set.length; place += 1) {
    let at = place;
    while (at > 0 && isBefore(unsorted, rank, place, places[at - 1]!)) {
      places[at] = places[at - 1]!;
      at -= 1;
    }
    places[at] = place;
  }
  const ids = places.map((place) => unsorted[place]!);
  let key = kindName(gpu);
  for (const id of ids) key += ` ${id}`;
  return { key, ids, places };
}

function isBefore(ids: readonly string[], rank: readonly number[], one: number, other: number): boolean {
  const [id, otherId] = [ids[one]!, ids[other]!];
  return id < otherId || (id === otherId && rank[one]! < rank[other]!);
}

const text = z.string();
const numbers = z.array(z.number().positive());
const rowSchema = z
  .object({
    ...{ gpuType: text, mode: text, driverMajor: z.int() },
    jobs: z.array(z.object({ id: text, function: text })).min(1),
    points: z.array(z.object({ shares: numbers, slowdowns: numbers, samples: z.array(numbers).min(1) })),
  })
  .refine(({ jobs, points }) =>
    points.every(({ shares, slowdowns, samples }) =>
      [shares, slowdowns, ...samples].every(({ length }) => length === jobs.length),
    ),
  );

/** A stored row: numbers that would spread are looked at. Throws RangeError. */
export function readQuotaRow(value: unknown): QuotaRow {
  if (!rowSchema.safeParse(value).success) throw new RangeError('this is no row of a quota table');
  return value as QuotaRow;
}

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

/** The rows of one kind of GPU by what their jobs are like; the most similar one is found by the cheapest assignment of jobs. */
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
