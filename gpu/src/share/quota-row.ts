// Rows of the quota table: their keys, measurements and stored form.
import type { DeviceMode } from '@gpuwhisk/common/gpu';
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
export interface QuotaRow {
  gpuType: string;
  mode: DeviceMode;
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

/** The best point whose slowdowns all are within `bounds`, with the shares that are fixed, fractions. */
export function bestWithin(
  { points }: QuotaRow,
  bounds: readonly number[],
  fixed: readonly (number | undefined)[],
): RowPoint | undefined {
  for (const point of points) {
    const { shares, slowdowns } = point;
    let isFit = true;
    for (let job = 0; job < bounds.length && isFit; job += 1) {
      const own = fixed[job];
      isFit = slowdowns[job]! <= bounds[job]! && (own === undefined || Math.abs(shares[job]! - own * 100) < sameShare);
    }
    if (isFit) return point;
  }
  return undefined;
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

/** The GPUs that a row may be used on. */
export function placeKey(gpuType: string, mode: DeviceMode): string {
  return `${gpuType}/${mode}`;
}

/** What a table calls a row. */
export function rowKey({
  gpuType,
  mode,
  jobs,
}: {
  gpuType: string;
  mode: DeviceMode;
  jobs: readonly { id: string }[];
}): string {
  return [placeKey(gpuType, mode), ...jobs.map(({ id }) => id)].join(' ');
}

/** A set in a table's order. */
interface OrderedSet {
  key: string;
  ids: readonly string[];
  /** By place in that order, the place in the set as it was given. */
  places: readonly number[];
}

/** Brings a set into a table's order: by id, and jobs of one id by `rank`, the least first. */
export function ordered(
  set: readonly QuotaJob[],
  gpuType: string,
  mode: DeviceMode,
  rank: readonly number[],
): OrderedSet {
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
  let key = placeKey(gpuType, mode);
  for (const id of ids) key += ` ${id}`;
  return { key, ids, places };
}

function isBefore(ids: readonly string[], rank: readonly number[], one: number, other: number): boolean {
  const [id, otherId] = [ids[one]!, ids[other]!];
  return id < otherId || (id === otherId && rank[one]! < rank[other]!);
}

/** Thrown for what is no row of a quota table. */
export class QuotaRowError extends Error {
  override name = 'QuotaRowError';
}

/** A stored row: numbers that would spread are looked at. Throws QuotaRowError. */
export function readQuotaRow(value: unknown): QuotaRow {
  const row = value as QuotaRow | null;
  if (typeof row !== 'object' || row === null) throw new QuotaRowError('this is no row of a quota table');
  const jobs = Array.isArray(row.jobs) ? row.jobs.length : 0;
  const areNumbers = (values: unknown): boolean =>
    Array.isArray(values) && values.length === jobs && values.every((one) => typeof one === 'number' && one > 0);
  const isSound =
    jobs > 0 &&
    typeof row.gpuType === 'string' &&
    typeof row.mode === 'string' &&
    Number.isInteger(row.driverMajor) &&
    row.jobs.every(({ id, function: name }) => typeof id === 'string' && typeof name === 'string') &&
    Array.isArray(row.points) &&
    row.points.every(
      (point) =>
        areNumbers(point.shares) &&
        areNumbers(point.slowdowns) &&
        Array.isArray(point.samples) &&
        point.samples.length > 0 &&
        point.samples.every(areNumbers),
    );
  if (!isSound) throw new QuotaRowError('this is no row of a quota table');
  return row;
}
