import type { DatabaseName } from '@gpuwhisk/common/store/artifact-store';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject } from '@gpuwhisk/common/json';
import { CouchError } from './couchdb-client.js';
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

/** The first version that locks out accounts whose logins fail. */
const lockoutSince = [3, 4];

/**
 * Settings of a server that are known to harm, a line each; docs/failure-modes.md says what to do about them. Most of them are
 * shown to administrators only: what this account may not see, or the server does not tell, is left out.
 */
export async function serverWarnings(client: CouchClient): Promise<string[]> {
  const ask = async (path: string): Promise<JsonObject> => {
    const answer = await client.send({ path }).catch(() => undefined);
    return isJsonObject(answer) ? answer : {};
  };
  const [root, versions, lockout, membership] = await Promise.all(
    ['', '_node/_local/_versions', '_node/_local/_config/chttpd_auth_lockout', '_membership'].map(ask),
  );
  const warnings: string[] = [];
  const engine = isJsonObject(versions?.javascript_engine) ? versions.javascript_engine.name : undefined;
  if (engine === 'spidermonkey') {
    warnings.push(
      "its views run in SpiderMonkey, whose heap is 64 MiB unless couchjs has the flag -S: a document of some MB ends it, and a view's lists with it",
    );
  }
  // Only who may read the versions may read the configuration, where an absent setting is the default.
  if (engine !== undefined && hasLockout(root?.version) && (lockout?.mode ?? 'enforce') === 'enforce') {
    warnings.push(
      'it locks out an account after a few failed logins (chttpd_auth_lockout): one process with a wrong password locks out all with its account that come from its address',
    );
  }
  const nodes = membership?.cluster_nodes;
  if (Array.isArray(nodes) && nodes.length > 1) {
    warnings.push(
      `it is a cluster of ${nodes.length} nodes: its address must lead to one of them at a time, since of two writers at two nodes both may win`,
    );
  }
  return warnings;
}

function hasLockout(version: unknown): boolean {
  const [major = 0, minor = 0] = String(version).split('.').map(Number);
  const [sinceMajor = 0, sinceMinor = 0] = lockoutSince;
  return major > sinceMajor || (major === sinceMajor && minor >= sinceMinor);
}
