import { cholesky, solveLower } from './cholesky.js';

/** Values of a normal distribution with its covariance divided out (Rasmussen and Williams, algorithm 2.1). */
export interface Whitened {
  /** The covariance's factor L, with L·Lᵀ the covariance. */
  lower: Float64Array;
  /** L⁻¹ times the values. */
  values: Float64Array;
  /** Their squares' sum. With the next it is minus twice the logarithm of the density, but for size times log 2π. */
  fit: number;
  /** Of the covariance. */
  logDeterminant: number;
}

/** Whitens `values`, their distance from the mean, of which there are as many as `covariance` has rows. Throws RangeError as `cholesky`. */
export function whiten(covariance: Float64Array, values: Float64Array): Whitened {
  const size = values.length;
  const lower = cholesky(covariance, size);
  const whitened = values.slice();
  solveLower(lower, whitened);
  let fit = 0;
  let logDeterminant = 0;
  for (let row = 0; row < size; row += 1) {
    fit += whitened[row]! ** 2;
    logDeterminant += 2 * Math.log(lower[row * size + row]!);
  }
  return { lower, values: whitened, fit, logDeterminant };
}
