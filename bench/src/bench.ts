import type { Cleanup } from './cleanup.js';
import type { LoadGenerator } from './load/load.js';
import type { Options } from './options.js';
import { median, spread } from './statistics.js';

/** One figure of a run. The unit is in the name; fractions are fractions. */
export interface Measurement {
  name: string;
  value: number;
  /** Smallest and largest of the samples whose median `value` is. */
  spread?: readonly [number, number];
}

/** The median of `values` under `name`, with their spread. Throws RangeError for no values. */
export function medianOf(name: string, values: readonly number[]): Measurement {
  return { name, value: median(values), spread: spread(values) };
}

/** What a bench is given. */
export interface BenchContext {
  options: Options;
  load: LoadGenerator;
  /** Everything that a bench starts is registered here, and is stopped when the run ends, however it ends. */
  cleanup: Cleanup;
  /** A folder that is removed afterwards. */
  temporaryDir: string;
  /** Progress, one line. */
  say(line: string): void;
}

/** One entry of the table in benches.ts. */
export interface Bench {
  summary: string;
  /** Parts that `--parts` may choose from; all run by default. */
  parts: readonly string[];
  /** Whether its figures are of the stand-in for a GPU. */
  simulated?: boolean;
  run(context: BenchContext): Promise<Measurement[]>;
}
