// The Cholesky factor of a matrix, and whitening by it.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- indices run below the size of square matrices and of vectors of as many rows */

/** Added to the diagonal, relative to its mean, where a matrix is not positive definite as it is: a thousandfold more each time. */
const jitters = [0, 1e-10, 1e-7, 1e-4];

/**
 * The lower triangle L with L·Lᵀ = `matrix`, row by row, of a symmetric matrix of `size` rows. Where rounding, or rows
 * that are the same, leave it not quite positive definite, the least jitter that mends it is added. Throws RangeError
 * where none does, or an element is no finite number.
 */
export function cholesky(matrix: Float64Array, size: number): Float64Array {
  let trace = 0;
  for (let row = 0; row < size; row += 1) trace += matrix[row * size + row]!;
  for (const jitter of jitters) {
    const lower = tryCholesky(matrix, size, (jitter * trace) / size);
    if (lower !== undefined) return lower;
  }
  throw new RangeError(`a matrix of ${size} rows is not positive definite`);
}

function tryCholesky(matrix: Float64Array, size: number, jitter: number): Float64Array | undefined {
  const lower = new Float64Array(size * size);
  for (let row = 0; row < size; row += 1) {
    for (let column = 0; column <= row; column += 1) {
      let rest = matrix[row * size + column]!;
      for (let k = 0; k < column; k += 1) rest -= lower[row * size + k]! * lower[column * size + k]!;
      if (column < row) {
        lower[row * size + column] = rest / lower[column * size + column]!;
        continue;
      }
      const diagonal = matrix[row * size + row]!;
      // What is left of a diagonal after cancellation is noise; a NaN fails the comparison too.
      if (!(rest + jitter > 1e-12 * diagonal) || !Number.isFinite(rest)) return undefined;
      lower[row * size + row] = Math.sqrt(rest + jitter);
    }
  }
  return lower;
}

/** Solves L·x = `values` for a lower triangle of as many rows; the solution takes the place of `values`. */
export function solveLower(lower: Float64Array, values: Float64Array): void {
  const size = values.length;
  for (let row = 0; row < size; row += 1) {
    let rest = values[row]!;
    for (let k = 0; k < row; k += 1) rest -= lower[row * size + k]! * values[k]!;
    values[row] = rest / lower[row * size + row]!;
  }
}

/** Solves Lᵀ·x = `values` for a lower triangle of as many rows; the solution takes the place of `values`. */
export function solveUpper(lower: Float64Array, values: Float64Array): void {
  const size = values.length;
  for (let row = size - 1; row >= 0; row -= 1) {
    let rest = values[row]!;
    for (let k = row + 1; k < size; k += 1) rest -= lower[k * size + row]! * values[k]!;
    values[row] = rest / lower[row * size + row]!;
  }
}

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

/** `whiten` of measurements with this variance of their noise; `covariance` is that without it, and stays as it is. */
export function whitenNoisy(covariance: Float64Array, values: Float64Array, noise: number): Whitened {
  const noisy = covariance.slice();
  for (let row = 0; row < values.length; row += 1) noisy[row * values.length + row]! += noise;
  return whiten(noisy, values);
}

/** Minus twice the log likelihood of values with the scale that maximises it, less what is the same for all covariances. */
export function unlikelihood({ values, fit, logDeterminant }: Whitened): number {
  return values.length * Math.log(Math.max(fit, 1e-300) / values.length) + logDeterminant;
}
