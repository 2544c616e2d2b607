import type { Trial } from './trial.js';

/**
 * An identity that administers others; functions that reach the API; limits that the kernel keeps; hosts of
 * namespaces; several activations in a container; a server that encrypts parameters.
 */
export type Need = 'operator' | 'network' | 'isolation' | 'vanityDomain' | 'concurrency' | 'encryption';

/** One fact of OpenWhisk's behaviour over HTTP, and requests that show whether a server has it. */
export interface ConformanceCase {
  area: string;
  /** In a few words; unique within the area. */
  fact: string;
  /** OpenWhisk's file that makes it so. */
  source: string;
  /** The cases of OpenWhisk's own suites that it stands for, as `Suite: case`. */
  stands: readonly string[];
  /** What not every server or machine has. */
  needs?: Need;
  /** Makes requests and expects. */
  run(trial: Trial): Promise<void>;
}

/** A line of a table of cases. */
export interface Row {
  fact: string;
  /** Where it is not the table's. */
  source?: string;
  stands?: string | readonly string[];
  needs?: Need;
  run(trial: Trial): Promise<void>;
}

/** The cases of one area, which share a source where a row names none. */
export function table(area: string, source: string, rows: readonly Row[]): ConformanceCase[] {
  return rows.map(({ stands = [], ...row }) => ({
    area,
    source,
    ...row,
    stands: typeof stands === 'string' ? [stands] : stands,
  }));
}
