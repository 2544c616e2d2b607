import { expect, test } from '@jest/globals';
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { cheapestAssignment } from './quota-row.js';

function permutations(size: number): number[][] {
  if (size === 0) return [[]];
  return permutations(size - 1).flatMap((rest) =>
    Array.from({ length: size }, (_, at) => [...rest.slice(0, at), size - 1, ...rest.slice(at)]),
  );
}

test('no permutation costs less than the one that is found', () => {
  const random = seededRandom(3);
  for (let size = 1; size <= 6; size += 1) {
    for (let round = 0; round < 20; round += 1) {
      // Whole numbers, so that there are ties.
      const costs = Float64Array.from({ length: size * size }, () => Math.floor(10 * randomFraction(random)));
      const cost = (columns: ArrayLike<number>): number =>
        Array.from(columns).reduce((sum, column, row) => sum + costs[row * size + column]!, 0);
      const found = cheapestAssignment(costs, size);
      expect([...found].sort()).toEqual(Array.from({ length: size }, (_, at) => at));
      expect(cost(found)).toBe(Math.min(...permutations(size).map(cost)));
    }
  }
});
