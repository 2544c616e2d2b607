import { expect, test } from '@jest/globals';
import { cholesky, solveLower, solveUpper, whiten } from './cholesky.js';

test('the factor of a matrix gives the matrix again, and solves', () => {
  const matrix = Float64Array.of(4, 2, 0.6, 2, 5, 1, 0.6, 1, 3);
  const lower = cholesky(matrix, 3);
  for (let row = 0; row < 3; row += 1) {
    for (let column = 0; column < 3; column += 1) {
      let sum = 0;
      for (let k = 0; k < 3; k += 1) sum += lower[row * 3 + k]! * lower[column * 3 + k]!;
      expect(sum).toBeCloseTo(matrix[row * 3 + column]!, 12);
    }
  }
  const values = Float64Array.of(2, 3, 4);
  solveLower(lower, values);
  expect(lower[0]! * values[0]!).toBeCloseTo(2, 12);
  expect(lower[6]! * values[0]! + lower[7]! * values[1]! + lower[8]! * values[2]!).toBeCloseTo(4, 12);
  solveUpper(lower, values);
  // Both together have solved the system of the matrix.
  expect(4 * values[0]! + 2 * values[1]! + 0.6 * values[2]!).toBeCloseTo(2, 12);
  expect(2 * values[0]! + 5 * values[1]! + values[2]!).toBeCloseTo(3, 12);
});

test('rows that are the same are mended, what is beyond mending is refused', () => {
  const same = cholesky(Float64Array.of(1, 1, 1, 1), 2);
  expect(Array.from(same).every(Number.isFinite)).toBe(true);
  expect(() => cholesky(Float64Array.of(1, 2, 2, 1), 2)).toThrow(RangeError);
  expect(() => cholesky(Float64Array.of(NaN), 1)).toThrow(RangeError);
});

test('whitened values have the fit and the determinant of their covariance', () => {
  const { values, fit, logDeterminant } = whiten(Float64Array.of(4, 0, 0, 9), Float64Array.of(2, 6));
  expect([...values]).toEqual([1, 2]);
  expect(fit).toBe(5);
  expect(logDeterminant).toBeCloseTo(Math.log(36), 12);
});
