import { join } from 'node:path';
import { connectApi, type Api } from '../api.js';
import type { BenchContext, Measurement } from '../bench.js';
import { startPlatform, type Server } from '../servers.js';

/** What a part measures. */
export interface PartPlatform {
  platform: Server;
  api: Api;
}

/**
 * Runs the parts that are asked for, each on a platform of its own, so that one part's containers and records do not weigh
 * on the next. `surroundings` makes of that platform what parts are given.
 */
export async function runParts<Given>(
  context: BenchContext,
  parts: Readonly<Record<string, (context: BenchContext, given: Given) => Promise<Measurement[]>>>,
  surroundings: (own: PartPlatform) => Given,
): Promise<Measurement[]> {
  const { options, cleanup, temporaryDir, say } = context;
  const measurements: Measurement[] = [];
  for (const [name, measure] of Object.entries(parts)) {
    if (options.parts.length > 0 && !options.parts.includes(name)) continue;
    say(`Part ${name}`);
    const platform = await startPlatform(cleanup, { dataDir: join(temporaryDir, name) });
    const api = connectApi(platform.url);
    cleanup.add('connection', () => api.close());
    measurements.push(...(await measure(context, surroundings({ platform, api }))));
    api.close();
    await platform.stop();
  }
  return measurements;
}
