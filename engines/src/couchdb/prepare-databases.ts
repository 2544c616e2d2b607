import type { DatabaseName } from '@gpuwhisk/common/store/artifact-store';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { CouchError } from './couch-error.js';
import type { CouchClient, CouchRequest } from './couchdb-client.js';
import { designDocuments } from './design-documents.js';

/** A server that makes the same for several processes at once may fail, or not have it yet, for a moment. */
const maxAttempts = 10;
const retryMs = 200;

/** Makes the databases and views that are missing. Those that are there stay as they are. Rejects with CouchError. */
export async function prepareDatabases(client: CouchClient, prefix: string, clock: Clock): Promise<void> {
  for (const name of Object.keys(designDocuments) as DatabaseName[]) {
    const database = prefix + name;
    await ensure(client, clock, `database '${database}'`, { database });
    for (const [design, document] of Object.entries(designDocuments[name])) {
      const path = `_design/${design}`;
      const request = { database, path, body: { ...document } };
      await ensure(client, clock, `design document '${path}' of database '${database}'`, request);
    }
  }
}

/** Makes `what` with a PUT of `request` unless a GET finds it. */
async function ensure(client: CouchClient, clock: Clock, what: string, request: CouchRequest): Promise<void> {
  const place = { ...request };
  delete place.body;
  for (let attempt = 1; ; attempt++) {
    try {
      if (!(await isThere(client, what, place))) await make(client, what, request);
      return;
    } catch (error) {
      const { status } = error as CouchError;
      // A server that does not answer is not waited for again, and rights do not change.
      if (status === 0 || status === 401 || status === 403 || attempt === maxAttempts) throw error;
    }
    await sleep(clock, retryMs);
  }
}

async function isThere(client: CouchClient, what: string, place: CouchRequest): Promise<boolean> {
  try {
    await client.send(place);
    return true;
  } catch (error) {
    const { status, message } = error as CouchError;
    if (status === 404) return false;
    // 401: the account itself is not known.
    if (status === 0 || status === 401) throw error;
    throw new CouchError(`the ${what} cannot be read: ${message}`, status);
  }
}

async function make(client: CouchClient, what: string, request: CouchRequest): Promise<void> {
  try {
    await client.send({ ...request, method: 'PUT' });
  } catch (error) {
    const { status, message } = error as CouchError;
    // Another process was faster.
    if (status === 412 || status === 409) return;
    const isForbidden = status === 401 || status === 403;
    const problem = isForbidden
      ? `is missing, and this account may not make it (${message}); start once with an account that may`
      : `cannot be made: ${message}`;
    throw new CouchError(`the ${what} ${problem}`, status);
  }
}
