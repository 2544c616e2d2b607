import { StepSize } from '@gpuwhisk/common/store/step-size';
import { hasExpired } from '@gpuwhisk/common/store/views';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { CouchError, CouchRequest } from './couchdb-client.js';

/** Records that are removed at once. Three requests for them take longer than a step of a store in this process. */
const steps = { least: 500, most: 2000, growsBelowMs: 200, shrinksAboveMs: 400 };

/** Sends a request to the database of activation records. */
type Ask = (request: CouchRequest) => Promise<JsonObject | JsonValue[]>;

/** What is asked of the database. */
interface RecordDatabase {
  ask: Ask;
  /** For the time that steps take. */
  clock: Pick<Clock, 'monotonicMs'>;
  /** Rows of view `activations`. */
  view(query: Record<string, JsonValue>): Promise<JsonObject[]>;
}

/** Removes records that ended before `beforeMs`; gives how many after each page, none included. Throws CouchError. */
export async function* removeExpired({ ask, view, clock }: RecordDatabase, beforeMs: number): AsyncIterable<number> {
  const groups = await view({ reduce: true, group_level: 1 });
  const size = new StepSize(steps);
  for (const { key } of groups) {
    const [namespace] = Array.isArray(key) ? key : [];
    if (namespace === undefined) continue;
    const range = { startkey: [namespace], endkey: [namespace, beforeMs] };
    // Rows of records that started before and ended later.
    let skip = 0;
    for (;;) {
      const beganMs = clock.monotonicMs();
      const limit = size.most;
      const rows = await view({ ...range, limit, ...(skip > 0 && { skip }) });
      const expired = rows.filter((row) => hasExpired(row.value, startOf(row), beforeMs));
      const removed =
        expired.length === 0
          ? 0
          : await removeAll(
              ask,
              expired.map(({ id }) => String(id)),
            );
      size.took(rows.length, clock.monotonicMs() - beganMs);
      yield removed;
      skip += rows.length - expired.length;
      // A view that is behind has rows of what was removed already: those are left to the next pass.
      if (rows.length < limit || (expired.length > 0 && removed === 0)) break;
    }
  }
}

function startOf({ key }: JsonObject): number {
  return Array.isArray(key) ? Number(key[1]) : NaN;
}

async function removeAll(ask: Ask, ids: readonly string[]): Promise<number> {
  const found = await ask({ method: 'POST', path: '_all_docs', body: { keys: [...ids] } });
  const rows = isJsonObject(found) && Array.isArray(found.rows) ? found.rows.filter(isJsonObject) : [];
  const docs = rows.flatMap(({ id, value }) =>
    isJsonObject(value) && typeof value.rev === 'string' && value.deleted !== true
      ? [{ _id: String(id), _rev: value.rev, _deleted: true }]
      : [],
  );
  if (docs.length === 0) return 0;
  const results = await ask({ method: 'POST', path: '_bulk_docs', body: { docs } });
  return (Array.isArray(results) ? results.filter(isJsonObject) : []).filter(({ error }) => error === undefined).length;
}

/** A file is compacted if so much of it is not in use: CouchDB's own compaction, where that is on, has the same bound. */
const sparseRatio = 2;
const smallFileBytes = 16 * 1024 * 1024;

/**
 * Has the database and its views compacted where most of their files is not in use. An account that may not is no error: CouchDB
 * does it by itself unless that was turned off. Throws CouchError.
 */
export async function compactSparse(ask: Ask, designs: readonly string[]): Promise<void> {
  try {
    if (isSparse(await ask({}))) await ask({ method: 'POST', path: '_compact', body: {} });
    for (const design of designs) {
      const info = await ask({ path: `_design/${design}/_info` });
      if (isSparse((info as JsonObject).view_index)) {
        await ask({ method: 'POST', path: `_compact/${design}`, body: {} });
      }
    }
    await ask({ method: 'POST', path: '_view_cleanup', body: {} });
  } catch (error) {
    const { status } = error as CouchError;
    // 404: a server of CouchDB's protocol that has nothing to compact.
    if (status !== 401 && status !== 403 && status !== 404) throw error;
  }
}

function isSparse(about: unknown): boolean {
  const sizes = isJsonObject(about) && isJsonObject(about.sizes) ? about.sizes : {};
  const { file, active } = sizes;
  return typeof file === 'number' && typeof active === 'number' && file > smallFileBytes && file > active * sparseRatio;
}
