import { isJsonObject } from '../json.js';
import type { JsonValue } from '../json.js';

/**
 * Whether a record, of which this is the row in view `activations`, ended before `beforeMs` (ms since the epoch). One that has no
 * end, such as a trigger's, ended when it started.
 */
export function hasExpired(row: JsonValue | undefined, startMs: number, beforeMs: number): boolean {
  const end = isJsonObject(row) && typeof row.end === 'number' ? row.end : startMs;
  return Math.max(startMs, end) < beforeMs;
}
