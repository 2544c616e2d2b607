import { randomFraction, seededRandom, type Random } from '@gpuwhisk/common/system/random';
import type { SlowdownSample } from '../predict/samples.js';
import type { CoLocated } from '../predict/slowdown-predictor.js';

function workload(random: Random): CoLocated {
  const [smUtil, dramUtil, l2Util] = [0, 0, 0].map(() => randomFraction(random)) as [number, number, number];
  return { features: { smUtil, dramUtil, l2Util }, share: (1 + Math.floor(randomFraction(random) * 10)) / 10 };
}

/** Invented runs beside one to three neighbours, under a law that no predictor here has, with 2 % of noise. For tests. */
export function inventedSamples(count: number, seed: number): SlowdownSample[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, () => {
    const one = workload(random);
    const others = Array.from({ length: 1 + Math.floor(randomFraction(random) * 3) }, () => workload(random));
    const dram = others.reduce((sum, { features, share }) => sum + features.dramUtil! * share, 0);
    const l2 = others.reduce((sum, { features, share }) => sum + features.l2Util! * share, 0);
    const alone = Math.max(1, one.features.smUtil / one.share);
    const contended = 1 + 0.4 * one.features.dramUtil! * dram + 0.2 * one.features.l2Util! * l2 * l2;
    return { one, others, slowdown: alone * contended * (0.98 + 0.04 * randomFraction(random)) };
  });
}
