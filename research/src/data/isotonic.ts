/**
 * The non-increasing sequence closest to `values` in least squares (pool adjacent violators). Neighbours that rise are
 * replaced by their mean.
 */
export function nonIncreasing(values: readonly number[]): number[] {
  const blocks: { mean: number; count: number }[] = [];
  for (const value of values) {
    let block = { mean: value, count: 1 };
    for (let last = blocks.at(-1); last && last.mean < block.mean; last = blocks.at(-1)) {
      blocks.pop();
      const count = last.count + block.count;
      block = { mean: (last.mean * last.count + block.mean * block.count) / count, count };
    }
    blocks.push(block);
  }
  return blocks.flatMap(({ mean, count }) => Array<number>(count).fill(mean));
}
