import type { Bench, Measurement } from '../bench.js';
import { coScaling } from './dilu-coscaling.js';

/** Dilu's experiments against its baselines. Reads measured data from BENCH_DATA. */
export const dilu: Bench = {
  summary: "Dilu's experiments: co-scaling on traces over measured surfaces, in replay (needs BENCH_DATA)",
  parts: ['coscaling'],
  simulated: true,
  async run(context) {
    const { parts } = context.options;
    const wants = (part: string): boolean => parts.length === 0 || parts.includes(part);
    const measurements: Measurement[] = [];
    if (wants('coscaling')) measurements.push(...(await coScaling(context)));
    return measurements;
  },
};
