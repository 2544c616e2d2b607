import type { DeviceMode } from '@gpuwhisk/common/gpu';
import type { WorkloadFeatures } from '../predict/slowdown-predictor.js';

/** A job of a row. */
export interface RowJob {
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
export function objective({ slowdowns }: RowPoint): number {
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
