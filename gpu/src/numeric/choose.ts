/* eslint-disable @typescript-eslint/no-non-null-assertion -- both indices are below `count` */
import { randomFraction } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';

/** `most` of the numbers below `count` in random order, or all of them. */
export function choose(count: number, most: number, random: Random): number[] {
  const order = Array.from({ length: count }, (_, i) => i);
  const wanted = Math.min(most, count);
  for (let i = 0; i < wanted; i += 1) {
    const j = i + Math.floor(randomFraction(random) * (count - i));
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order.slice(0, wanted);
}
