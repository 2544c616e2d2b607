import type { Bench, Measurement } from '@gpuwhisk/bench/bench';
import { readInputs } from '../replay/protean/setting.js';
import { proteanCompliance } from './protean-compliance.js';
import { proteanCost } from './protean-cost.js';
import { proteanSensitivity } from './protean-sensitivity.js';

/** PROTEAN's experiments against its baselines. Reads measured data from BENCH_DATA. */
export const protean: Bench = {
  summary:
    "PROTEAN's experiments in replay: compliance and latency on slices, sensitivity, cost of nodes (needs BENCH_DATA)",
  parts: ['compliance', 'sensitivity', 'cost'],
  simulated: true,
  async run(context) {
    const { parts } = context.options;
    const wants = (part: string): boolean => parts.length === 0 || parts.includes(part);
    const inputs = await readInputs();
    const measurements: Measurement[] = [];
    if (wants('compliance')) measurements.push(...proteanCompliance(context, inputs));
    if (wants('sensitivity')) measurements.push(...proteanSensitivity(context, inputs));
    if (wants('cost')) measurements.push(...(await proteanCost(context, inputs)));
    return measurements;
  },
};
