import { createHash } from 'node:crypto';
import type { BenchContext, Measurement } from '../bench.js';
import { launchOf, measureRuntime } from './inject-runtime.js';

const code = 'function main(argument) { return argument }';
const digest = createHash('sha256').update(code).digest('hex');

/** Node.js functions loaded into a started process, run and unloaded. */
export async function injectNodejs(context: BenchContext): Promise<Measurement[]> {
  const own = `nodejs:${process.versions.node.split('.')[0]}`;
  const launch = await launchOf(context, 'nodejs', (kind) => kind === own);
  if (!launch) return [];
  return measureRuntime(context, 'nodejs', launch, { code, main: 'main', binary: false, digest });
}
