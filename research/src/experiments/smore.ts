import type { Bench, Measurement } from '@gpuwhisk/bench/bench';
import { coLocationParts, smoreCoLocation } from './smore-compare.js';
import { smoreCost } from './smore-cost.js';
import { smoreLive } from './smore-live.js';
import { smorePredictor } from './smore-predictor.js';
import { prewarm } from './smore-prewarm.js';
import { retraining } from './smore-retraining.js';

/** SMORE's experiments against its baselines. Reads measured data from BENCH_DATA. */
export const smore: Bench = {
  summary:
    "SMORE's experiments: degradation predictor on measured pairs, pre-warming on traces, scheduling beside training in replay (these need BENCH_DATA) and on a platform",
  parts: ['predictor', 'prewarm', 'retraining', ...coLocationParts, 'cost', 'live'],
  simulated: true,
  async run(context) {
    const { parts } = context.options;
    const wants = (part: string): boolean => parts.length === 0 || parts.includes(part);
    const measurements: Measurement[] = [];
    if (wants('predictor')) measurements.push(...(await smorePredictor(context)));
    if (wants('prewarm')) measurements.push(...(await prewarm(context)));
    if (wants('retraining')) measurements.push(...(await retraining(context)));
    measurements.push(...(await smoreCoLocation(context, wants)));
    if (wants('cost')) measurements.push(...smoreCost(context));
    if (wants('live')) measurements.push(...(await smoreLive(context)));
    return measurements;
  },
};
