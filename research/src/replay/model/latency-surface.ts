import { nonIncreasing } from '../../data/isotonic.js';

/** One measured point: a batch alone on the GPU at an MPS share. */
export interface SurfacePoint {
  batch: number;
  /** MPS share, 0 < share ≤ 1. */
  share: number;
  latencyMs: number;
}

/** Solo latency over batch and share, on the grid of measured points. */
export interface LatencySurface {
  /** Rising. */
  batches: readonly number[];
  /** Rising; the shares that every batch was measured at. */
  shares: readonly number[];
  /** ms, one row a batch, falling (or level) along the shares. */
  latencyMs: readonly (readonly number[])[];
}

/** Tolerance of the saturation share against the time at the full share, as a fraction. */
const saturationTolerance = 0.02;

/**
 * Measured points as a surface. Shares that were not measured for every batch are left out, repeats are averaged, and
 * each batch is made isotonic in the share. Throws RangeError if fewer than two shares remain.
 */
export function latencySurface(points: readonly SurfacePoint[]): LatencySurface {
  const batches = sortedDistinct(points.map(({ batch }) => batch));
  const shares = sortedDistinct(points.map(({ share }) => share)).filter((share) =>
    batches.every((batch) => points.some((point) => point.batch === batch && point.share === share)),
  );
  if (shares.length < 2) throw new RangeError('a latency surface needs two shares that every batch was measured at');
  const latencyMs = batches.map((batch) =>
    nonIncreasing(
      shares.map((share) => {
        const same = points.filter((point) => point.batch === batch && point.share === share);
        return same.reduce((sum, point) => sum + point.latencyMs, 0) / same.length;
      }),
    ),
  );
  return { batches, shares, latencyMs };
}

/**
 * Latency at `batch` and `share`, ms: bilinear in the logarithms of all three. Throws RangeError outside the grid,
 * since the surface does not extrapolate.
 */
export function latencyAt(surface: LatencySurface, batch: number, share: number): number {
  const { batches, shares, latencyMs } = surface;
  const [row, rowPart] = position(batches, batch, 'batch');
  const [column, columnPart] = position(shares, share, 'share');
  const at = (i: number, j: number): number => Math.log(latencyMs[i]?.[j] as number);
  const along = (i: number): number =>
    columnPart === 0 ? at(i, column) : at(i, column) * (1 - columnPart) + at(i, column + 1) * columnPart;
  return Math.exp(rowPart === 0 ? along(row) : along(row) * (1 - rowPart) + along(row + 1) * rowPart);
}

/** The smallest measured share whose latency is within 2 % of that at the largest share. */
export function saturationShare(surface: LatencySurface, batch: number): number {
  const { shares } = surface;
  const full = shares.at(-1) as number;
  const bound = latencyAt(surface, batch, full) * (1 + saturationTolerance);
  return shares.find((share) => latencyAt(surface, batch, share) <= bound) ?? full;
}

function sortedDistinct(values: readonly number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}

/**
 * Position of `value` on a rising axis: the knot at or below it, and the fraction of the way to the next, in
 * logarithms.
 */
function position(axis: readonly number[], value: number, what: string): [number, number] {
  const first = axis[0] as number;
  const last = axis.at(-1) as number;
  if (!(value >= first && value <= last)) {
    throw new RangeError(`${what} ${value} was not measured: the grid goes from ${first} to ${last}`);
  }
  let knot = 0;
  while (knot < axis.length - 1 && (axis[knot + 1] as number) <= value) knot += 1;
  const below = axis[knot] as number;
  if (below === value) return [knot, 0];
  return [knot, Math.log(value / below) / Math.log((axis[knot + 1] as number) / below)];
}
