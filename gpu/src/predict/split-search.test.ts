import { expect, test } from '@jest/globals';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { bestSplits, randomSplits, squared, type SampleTable } from './split-search.js';

function tableOf(count: number, seed: number): SampleTable {
  const random = seededRandom(seed);
  // Few distinct values: ties are where a search by sorted order goes wrong.
  const column = Float32Array.from({ length: count }, () => Math.floor(randomFraction(random) * 8));
  const targets = Float64Array.from(column, (value) => value * value + randomFraction(random) * 10);
  return { count, columns: [column], targets };
}

function lossOf(targets: number[]): number {
  const impurity = squared();
  targets.forEach((target) => impurity.push(target));
  return impurity.loss();
}

/** The least loss over all thresholds, by trying each. */
function bruteForce(table: SampleTable, members: Int32Array, minLeaf: number): number {
  const [column] = table.columns;
  const losses = [...column!].map((threshold) => {
    const side = (wanted: boolean): number[] =>
      [...members].filter((member) => column![member]! <= threshold === wanted).map((member) => table.targets[member]!);
    const [left, right] = [side(true), side(false)];
    if (Math.min(left.length, right.length) < minLeaf) return Infinity;
    return lossOf(left) + lossOf(right);
  });
  return Math.min(...losses);
}

test.each([1, 2, 3, 4, 5])('seed %i: no threshold is better than the one found', (seed) => {
  const table = tableOf(40, seed);
  const random = seededRandom(seed);
  const members = Int32Array.from({ length: 30 }, () => Math.floor(randomFraction(random) * table.count));
  const split = bestSplits(table, squared, 3)(members, 0)!;
  expect(split.loss).toBeCloseTo(bruteForce(table, members, 3), 9);
  const left = [...members].filter((member) => table.columns[0]![member]! <= split.threshold);
  expect(left.length).toBeGreaterThanOrEqual(3);
  expect(members.length - left.length).toBeGreaterThanOrEqual(3);
});

test('values a rounding apart are still divided', () => {
  const low = 1;
  const high = 1 + 2 ** -23;
  const table = { count: 2, columns: [Float32Array.of(high, low)], targets: Float64Array.of(5, 7) };
  const members = Int32Array.of(0, 1);
  for (const search of [bestSplits(table, squared, 1), randomSplits(table, squared, 1, seededRandom(1))]) {
    const split = search(members, 0)!;
    expect(split.threshold).toBeGreaterThanOrEqual(low);
    expect(split.threshold).toBeLessThan(high);
    expect(split.loss).toBe(0);
  }
});

test('a feature that does not vary divides nothing', () => {
  const table = { count: 3, columns: [Float32Array.of(4, 4, 4)], targets: Float64Array.of(1, 2, 3) };
  const members = Int32Array.of(0, 1, 2);
  expect(bestSplits(table, squared, 1)(members, 0)).toBeUndefined();
  expect(randomSplits(table, squared, 1, seededRandom(1))(members, 0)).toBeUndefined();
});
