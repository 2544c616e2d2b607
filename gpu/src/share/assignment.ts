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
