import type { Cluster } from './running-cluster.js';

const timeoutMs = 60_000;
const keysAtOnce = 1000;

/** A record as the database has it. */
export interface StoredRecord {
  activationId: string;
  start: number;
  response: { statusCode: number };
}

/** The records of these activations that are in the database, by their ids; it is asked past the platform. */
export async function storedRecords(
  { couchdb }: Pick<Cluster, 'couchdb'>,
  ids: readonly string[],
): Promise<Map<string, StoredRecord>> {
  const found = new Map<string, StoredRecord>();
  for (let from = 0; from < ids.length; from += keysAtOnce) {
    const keys = ids.slice(from, from + keysAtOnce).map((id) => `guest/${id}`);
    const answer = await fetch(`${couchdb.url}/whisk_local_activations/_all_docs?include_docs=true`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ keys }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (!answer.ok) throw new Error(`the records could not be read: ${answer.status} ${await answer.text()}`);
    const { rows } = (await answer.json()) as { rows: { doc?: StoredRecord | null }[] };
    for (const { doc } of rows) if (doc) found.set(doc.activationId, doc);
  }
  return found;
}

/** Waits until all are stored, at most until nothing has come for `quietMs`; gives those that are not, and the rest. */
export async function untilStored(
  cluster: Pick<Cluster, 'couchdb'>,
  ids: readonly string[],
  quietMs: number,
): Promise<{ missing: string[]; records: Map<string, StoredRecord> }> {
  const records = new Map<string, StoredRecord>();
  let missing = [...ids];
  let lastMs = performance.now();
  while (missing.length > 0 && performance.now() - lastMs < quietMs) {
    const found = await storedRecords(cluster, missing);
    if (found.size > 0) lastMs = performance.now();
    for (const [id, record] of found) records.set(id, record);
    missing = missing.filter((id) => !found.has(id));
    if (missing.length > 0) await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return { missing, records };
}
