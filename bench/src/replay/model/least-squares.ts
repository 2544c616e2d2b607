/**
 * Coefficients, none negative, that minimise the squared error of `rows`·c against `targets`, by trying every subset of
 * columns (for a few columns). A column that is left out has 0.
 */
export function nonNegativeLeastSquares(rows: readonly (readonly number[])[], targets: readonly number[]): number[] {
  const width = rows[0]?.length ?? 0;
  let best = { coefficients: Array<number>(width).fill(0), error: Infinity };
  for (let subset = 0; subset < 2 ** width; subset += 1) {
    const columns = Array.from({ length: width }, (_, i) => i).filter((i) => (subset >> i) & 1);
    const solved = solve(columns, rows, targets);
    if (!solved || solved.some((value) => value < 0)) continue;
    const coefficients = Array<number>(width).fill(0);
    columns.forEach((column, i) => (coefficients[column] = solved[i] as number));
    const error = rows.reduce((sum, row, i) => sum + (dot(row, coefficients) - (targets[i] as number)) ** 2, 0);
    if (error < best.error) best = { coefficients, error };
  }
  return best.coefficients;
}

/** Normal equations over the chosen columns by Gaussian elimination; undefined where they are singular. */
function solve(
  columns: readonly number[],
  rows: readonly (readonly number[])[],
  targets: readonly number[],
): number[] | undefined {
  const n = columns.length;
  const matrix = columns.map((a) => [
    ...columns.map((b) => rows.reduce((sum, row) => sum + (row[a] as number) * (row[b] as number), 0)),
    rows.reduce((sum, row, i) => sum + (row[a] as number) * (targets[i] as number), 0),
  ]);
  for (let step = 0; step < n; step += 1) {
    const pivotRow = matrix
      .slice(step)
      .reduce((best, row) => (Math.abs(row[step] as number) > Math.abs(best[step] as number) ? row : best));
    const pivot = pivotRow[step] as number;
    if (Math.abs(pivot) < 1e-12) return undefined;
    matrix[matrix.indexOf(pivotRow)] = matrix[step] as number[];
    matrix[step] = pivotRow.map((value) => value / pivot);
    for (const [i, row] of matrix.entries()) {
      if (i === step) continue;
      const factor = row[step] as number;
      matrix[i] = row.map((value, j) => value - factor * (matrix[step]?.[j] as number));
    }
  }
  return matrix.map((row) => row[n] as number);
}

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, i) => sum + value * (b[i] as number), 0);
}
