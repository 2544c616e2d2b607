import type { Bench, Measurement } from '../bench.js';
import { diluProfiling } from './dilu-profiling.js';

/** Dilu's experiments against its baselines. Reads measured data from BENCH_DATA. */
export const dilu: Bench = {
  summary: "Dilu's experiments: profiling on measured surfaces (BENCH_DATA)",
  parts: ['profiling'],
  async run(context) {
    const { parts } = context.options;
    const wants = (part: string): boolean => parts.length === 0 || parts.includes(part);
    const measurements: Measurement[] = [];
    if (wants('profiling')) measurements.push(...(await diluProfiling(context)));
    return measurements;
  },
};
