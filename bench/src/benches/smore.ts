import type { Bench } from '../bench.js';
import { prewarm } from './smore-prewarm.js';

/** SMORE's experiments against its baselines. Reads measured data from BENCH_DATA. */
export const smore: Bench = {
  summary: "SMORE's experiments: pre-warming on traces of Azure (needs BENCH_DATA)",
  parts: ['prewarm'],
  async run(context) {
    const { parts } = context.options;
    const wants = (part: string): boolean => parts.length === 0 || parts.includes(part);
    return wants('prewarm') ? prewarm(context) : [];
  },
};
