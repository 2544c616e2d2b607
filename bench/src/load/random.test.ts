import { expect, test } from '@jest/globals';
import { seededChoice } from './random.js';

test('the same seed gives the same choices, another seed others', () => {
  const take = (seed: number): number[] => Array.from({ length: 20 }, seededChoice(seed, 1000));
  expect(take(1)).toEqual(take(1));
  expect(take(1)).not.toEqual(take(2));
});

test.each([0, 1, 2, 12345])('choices of seed %d are near uniform', (seed) => {
  const counts = new Array<number>(10).fill(0);
  const choose = seededChoice(seed, 10);
  for (let draw = 0; draw < 10_000; draw += 1) counts[choose()] = (counts[choose()] ?? 0) + 1;
  for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(150);
});
