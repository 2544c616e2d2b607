import type { JsonValue } from '../json.js';
import { hasExpired } from './expired.js';
import { textOf } from './lmdb-table.js';
import type { Table } from './lmdb-table.js';
import { parseRow, rangeOf, rangeUnder } from './view-key.js';

/** Records that are removed at once: those that are created meanwhile wait for a step. */
const maxRecords = 100;
const everything = rangeUnder([]);

/**
 * Ids of records that ended before `beforeMs`, a hundred at most, by their rows in view `activations`: those of the first
 * namespaces from `from` on that have any. `next` is where to go on; undefined: there are no more.
 */
export function findExpired(view: Table, beforeMs: number, from: string): { ids: string[]; next: string | undefined } {
  const ids: string[] = [];
  let start = rangeUnder([from]).start;
  for (;;) {
    const [first] = view.getKeys({ start, end: everything.end, limit: 1 });
    if (first === undefined) return { ids, next: undefined };
    const namespace = String(parseRow(first as unknown as Uint8Array).key[0]);
    for (const { key, value } of view.getRange(rangeOf([namespace], [namespace, beforeMs]))) {
      const { id, key: viewKey } = parseRow(Buffer.from(key));
      const row = JSON.parse(textOf(value)) as JsonValue;
      if (hasExpired(row, Number(viewKey[1]), beforeMs)) ids.push(id);
      if (ids.length === maxRecords) return { ids, next: namespace };
    }
    start = rangeUnder([namespace]).end;
  }
}
