import type { Bench, Measurement } from '../bench.js';
import { smoreLive } from './smore-live.js';
import { smorePredictor } from './smore-predictor.js';
import { prewarm } from './smore-prewarm.js';

/** SMORE's experiments against its baselines. Reads measured data from BENCH_DATA. */
export const smore: Bench = {
  summary:
    "SMORE's experiments: its degradation predictor on measured pairs, pre-warming on traces (needs BENCH_DATA), functions beside a training on a simulated GPU",
  parts: ['predictor', 'prewarm', 'live'],
  simulated: true,
  async run(context) {
    const { parts } = context.options;
    const wants = (part: string): boolean => parts.length === 0 || parts.includes(part);
    const measurements: Measurement[] = [];
    if (wants('predictor')) measurements.push(...(await smorePredictor(context)));
    if (wants('prewarm')) measurements.push(...(await prewarm(context)));
    if (wants('live')) measurements.push(...(await smoreLive(context)));
    return measurements;
  },
};
