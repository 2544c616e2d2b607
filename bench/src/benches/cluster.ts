import type { Bench, BenchContext, Measurement } from '../bench.js';
import { measureHandover } from './cluster-handover.js';
import { measureLoad } from './cluster-load.js';
import { measurePath } from './cluster-path.js';
import { measureRecover } from './cluster-recover.js';

const parts: Readonly<Record<string, (context: BenchContext) => Promise<Measurement[]>>> = {
  path: measurePath,
  load: measureLoad,
  recover: measureRecover,
  handover: measureHandover,
};

/** A cluster on this machine, with Kafka, a server of CouchDB's protocol and Redis. */
export const cluster: Bench = {
  summary: 'a cluster on this machine: what it adds to standalone, sustained load, processes that are killed',
  parts: Object.keys(parts),
  async run(context) {
    const { options, say } = context;
    const measurements: Measurement[] = [];
    for (const [name, measure] of Object.entries(parts)) {
      if (options.parts.length > 0 && !options.parts.includes(name)) continue;
      say(`Part ${name}`);
      measurements.push(...(await measure(context)));
    }
    return measurements;
  },
};
