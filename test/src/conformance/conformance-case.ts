import type { Trial } from './trial.js';

/**
 * Requirements of cases: an identity that administers others; functions that reach the API; limits that the kernel
 * enforces; a host name for each namespace; several activations in one container; a server that encrypts parameters.
 */
export type Need = 'operator' | 'network' | 'isolation' | 'vanityDomain' | 'concurrency' | 'encryption';

/** One fact of OpenWhisk's behaviour over HTTP, with a check whether a server behaves so. */
export interface ConformanceCase {
  area: string;
  /** Short text, unique within the area. */
  fact: string;
  /** OpenWhisk's source file that implements the behaviour. */
  source: string;
  /** Cases of OpenWhisk's own suites that this case covers, as `Suite: case`. */
  stands: readonly string[];
  /** A requirement that not every server or machine meets. */
  needs?: Need;
  /** Sends requests and checks the answers. */
  run(trial: Trial): Promise<void>;
}

/** A row in a table of cases. */
export interface Row {
  fact: string;
  /** Source file, if it is not the table's. */
  source?: string;
  stands?: string | readonly string[];
  needs?: Need;
  run(trial: Trial): Promise<void>;
}

/** The cases of one area. `source` applies to each row that names none. */
export function table(area: string, source: string, rows: readonly Row[]): ConformanceCase[] {
  return rows.map(({ stands = [], ...row }) => ({
    area,
    source,
    ...row,
    stands: typeof stands === 'string' ? [stands] : stands,
  }));
}
