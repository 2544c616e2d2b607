import type { Bench, Measurement } from '../bench.js';
import { diluPacking } from './dilu-packing.js';

/** Dilu's experiments against its baselines. Reads measured data from BENCH_DATA. */
export const dilu: Bench = {
  summary: "Dilu's experiments: instances packed on few GPUs (needs BENCH_DATA)",
  parts: ['packing'],
  simulated: true,
  async run(context) {
    const { parts } = context.options;
    const wants = (part: string): boolean => parts.length === 0 || parts.includes(part);
    const measurements: Measurement[] = [];
    if (wants('packing')) measurements.push(...(await diluPacking(context)));
    return measurements;
  },
};
