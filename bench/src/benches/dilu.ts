import type { Bench, Measurement } from '../bench.js';
import { coScaling } from './dilu-coscaling.js';
import { diluPacking } from './dilu-packing.js';
import { diluProfiling } from './dilu-profiling.js';

/** Dilu's experiments against its baselines. Reads measured data from BENCH_DATA. */
export const dilu: Bench = {
  summary:
    "Dilu's experiments: profiling on measured surfaces, packing of instances, co-scaling on traces in replay (needs BENCH_DATA)",
  parts: ['profiling', 'packing', 'coscaling'],
  simulated: true,
  async run(context) {
    const { parts } = context.options;
    const wants = (part: string): boolean => parts.length === 0 || parts.includes(part);
    const measurements: Measurement[] = [];
    if (wants('profiling')) measurements.push(...(await diluProfiling(context)));
    if (wants('packing')) measurements.push(...(await diluPacking(context)));
    if (wants('coscaling')) measurements.push(...(await coScaling(context)));
    return measurements;
  },
};
