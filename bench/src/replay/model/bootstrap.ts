import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import { fitModel } from './fit.js';
import type { IgniterData, PairSide } from './igniter.js';
import type { ModelParameters } from './parameters.js';

/**
 * Parameters fitted to `count` bootstrap samples of the pairs. Whole pairs are drawn, with all their partitions, since
 * these are not independent; the clock's few points are not resampled.
 */
export function bootstrapModels(data: IgniterData, count: number, random: Random): ModelParameters[] {
  const byPair = new Map<string, PairSide[]>();
  for (const one of data.pairs) {
    const group = byPair.get(one.pair);
    if (group) group.push(one);
    else byPair.set(one.pair, [one]);
  }
  const groups = [...byPair.values()];
  const draw = (): PairSide[] => groups[Math.floor(randomFraction(random) * groups.length)] as PairSide[];
  return Array.from({ length: count }, () => fitModel({ ...data, pairs: groups.flatMap(draw) }));
}
