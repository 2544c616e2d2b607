import { join } from 'node:path';
import { connectApi, type Api } from '../api.js';
import type { Bench, BenchContext, Measurement } from '../bench.js';
import { startPlatform, startReference, type Server } from '../servers.js';
import { measureAsync } from './invoke-async.js';
import { measureMix } from './invoke-mix.js';
import { measureSteady } from './invoke-steady.js';

/** The two servers of a run, side by side. */
export interface Pair {
  platform: Server;
  reference: Server;
  api: Api;
}

type Part = (context: BenchContext, pair: Pair) => Promise<Measurement[]>;
const parts: Readonly<Record<string, Part>> = { steady: measureSteady, mix: measureMix, async: measureAsync };

/** No-op invocations against the bare server: latency, throughput, processor time, memory. */
export const invoke: Bench = {
  summary: 'no-op invocations, beside a bare server',
  parts: Object.keys(parts),
  async run(context) {
    const { options, cleanup, temporaryDir, say } = context;
    const reference = await startReference(cleanup);
    const measurements: Measurement[] = [];
    for (const [name, measure] of Object.entries(parts)) {
      if (options.parts.length > 0 && !options.parts.includes(name)) continue;
      say(`Part ${name}`);
      // A platform of its own, so that one part's containers and records do not weigh on the next.
      const platform = await startPlatform(cleanup, { dataDir: join(temporaryDir, name) });
      const api = connectApi(platform.url);
      cleanup.add('connection', () => api.close());
      measurements.push(...(await measure(context, { platform, reference, api })));
      api.close();
      await platform.stop();
    }
    return measurements;
  },
};
