import type { Bench, BenchContext, Measurement } from '../bench.js';
import { startReference, type Server } from '../servers.js';
import { measureAsync } from './invoke-async.js';
import { measureMix } from './invoke-mix.js';
import { measureSteady } from './invoke-steady.js';
import { runParts, type PartPlatform } from './part-platforms.js';

/** The two servers of a run, side by side. */
export interface Pair extends PartPlatform {
  reference: Server;
}

type Part = (context: BenchContext, pair: Pair) => Promise<Measurement[]>;
const parts: Readonly<Record<string, Part>> = { steady: measureSteady, mix: measureMix, async: measureAsync };

/** No-op invocations against the bare server: latency, throughput, processor time, memory. */
export const invoke: Bench = {
  summary: 'no-op invocations, beside a bare server',
  parts: Object.keys(parts),
  async run(context) {
    const reference = await startReference(context.cleanup);
    return runParts(context, parts, (own) => ({ ...own, reference }));
  },
};
