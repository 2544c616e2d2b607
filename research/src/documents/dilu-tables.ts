// Tables of docs/dilu-measurements.md by the names of their blocks.
import { overheadTables } from './dilu-overhead-tables.js';
import { packingTables } from './dilu-packing-tables.js';
import { profilingTables } from './dilu-profiling-tables.js';
import type { Metrics } from '@gpuwhisk/bench/documents/markdown';

const tables: Readonly<Record<string, (metrics: Metrics) => string>> = {
  ...profilingTables,
  ...packingTables,
  ...overheadTables,
};

/** A table from the metrics of experiment `dilu`. Throws Error for an unknown name. */
export function diluTable(metrics: Metrics, name: string): string {
  const table = tables[name];
  if (table === undefined) throw new Error(`There is no table '${name}' of experiment dilu.`);
  return table(metrics);
}
