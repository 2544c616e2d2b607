import type { Bench, Measurement } from '../bench.js';
import { smorePredictor } from './smore-predictor.js';

/** SMORE's experiments. */
export const smore: Bench = {
  summary: "SMORE's experiments: degradation predictor on measured pairs (needs BENCH_DATA)",
  parts: ['predictor'],
  async run(context) {
    const { parts } = context.options;
    const wants = (part: string): boolean => parts.length === 0 || parts.includes(part);
    const measurements: Measurement[] = [];
    if (wants('predictor')) measurements.push(...(await smorePredictor(context)));
    return measurements;
  },
};
