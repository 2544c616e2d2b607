import type { Cleanup } from './cleanup.js';
import type { LoadGenerator } from './load/load.js';
import type { Options } from './options.js';
import { median, spread } from './statistics.js';

/** One figure of a run. The unit is in the name; fractions are fractions. */
export interface Measurement {
  name: string;
  value: number;
  /** Smallest and largest of the samples whose median is `value`. */
  spread?: readonly [number, number];
}

/** The median of `values` under `name`, with their spread. Throws RangeError if `values` is empty. */
export function medianOf(name: string, values: readonly number[]): Measurement {
  return { name, value: median(values), spread: spread(values) };
}

/** Dependencies and options of a bench. */
export interface BenchContext {
  options: Options;
  load: LoadGenerator;
  /** Releases of everything that the bench starts; they run when the run ends or fails. */
  cleanup: Cleanup;
  /** A folder that is removed at the end of the run. */
  temporaryDir: string;
  /** Prints one line of progress. */
  say(line: string): void;
  /** Says that figures of this run are of a simulated device. */
  markSimulated(): void;
}

/** One entry of the table in benches.ts. */
export interface Bench {
  summary: string;
  /** Parts that `--parts` may choose from; all run by default. */
  parts: readonly string[];
  /** Whether the bench runs on the stand-in for a GPU. */
  simulated?: boolean;
  run(context: BenchContext): Promise<Measurement[]>;
}
