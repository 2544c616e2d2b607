import type { Bench } from '../bench.js';
import { runParts, type PartPlatform } from './part-platforms.js';
import { measureMigrate } from './surface-migrate.js';
import { measureSequence } from './surface-sequence.js';
import { measureTrigger } from './surface-trigger.js';
import { measureWeb } from './surface-web.js';

const parts = {
  web: measureWeb,
  sequence: measureSequence,
  trigger: measureTrigger,
  migrate: measureMigrate,
};

/** What OpenWhisk's ways to invoke cost, beside a plain invocation. */
export const surface: Bench = {
  summary: 'web actions and sequences beside plain invocations, a trigger with a hundred rules, a migration',
  parts: Object.keys(parts),
  run: (context) => runParts(context, parts, (own: PartPlatform) => own),
};
