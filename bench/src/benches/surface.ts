import { join } from 'node:path';
import { connectApi, type Api } from '../api.js';
import type { Bench, BenchContext, Measurement } from '../bench.js';
import { startPlatform, type Server } from '../servers.js';
import { measureMigrate } from './surface-migrate.js';
import { measureSequence } from './surface-sequence.js';
import { measureTrigger } from './surface-trigger.js';
import { measureWeb } from './surface-web.js';

/** The platform of one part. */
export interface Surface {
  platform: Server;
  api: Api;
}

type Part = (context: BenchContext, surface: Surface) => Promise<Measurement[]>;
const parts: Readonly<Record<string, Part>> = {
  web: measureWeb,
  sequence: measureSequence,
  trigger: measureTrigger,
  migrate: measureMigrate,
};

/** What OpenWhisk's ways to invoke cost, beside a plain invocation. */
export const surface: Bench = {
  summary: 'web actions and sequences beside plain invocations, a trigger with a hundred rules, a migration',
  parts: Object.keys(parts),
  async run(context) {
    const { options, cleanup, temporaryDir, say } = context;
    const measurements: Measurement[] = [];
    for (const [name, measure] of Object.entries(parts)) {
      if (options.parts.length > 0 && !options.parts.includes(name)) continue;
      say(`Part ${name}`);
      // A platform of its own, so that one part's containers and records do not weigh on the next.
      const platform = await startPlatform(cleanup, { dataDir: join(temporaryDir, name) });
      const api = connectApi(platform.url);
      cleanup.add('connection', () => api.close());
      measurements.push(...(await measure(context, { platform, api })));
      api.close();
      await platform.stop();
    }
    return measurements;
  },
};
