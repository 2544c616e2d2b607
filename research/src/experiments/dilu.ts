import type { Bench, BenchContext, Measurement } from '@gpuwhisk/bench/bench';
import { diluOverhead } from './dilu-overhead.js';
import { diluPacking } from './dilu-packing.js';
import { diluProfiling } from './dilu-profiling.js';

const parts: Readonly<Record<string, (context: BenchContext) => Promise<Measurement[]> | Measurement[]>> = {
  overhead: diluOverhead,
  profiling: diluProfiling,
  packing: diluPacking,
};

/** Dilu's experiments against its baselines. Reads measured data from BENCH_DATA. */
export const dilu: Bench = {
  summary:
    "Dilu's experiments: profiling on measured surfaces, packing of instances, time of decisions (needs BENCH_DATA)",
  parts: Object.keys(parts),
  simulated: true,
  async run(context) {
    const chosen = context.options.parts;
    const measurements: Measurement[] = [];
    for (const [name, measure] of Object.entries(parts)) {
      if (chosen.length > 0 && !chosen.includes(name)) continue;
      context.say(`dilu: ${name}`);
      measurements.push(...(await measure(context)));
    }
    return measurements;
  },
};
