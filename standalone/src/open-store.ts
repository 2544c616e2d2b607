import type { Config } from '@gpuwhisk/common/config';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { openLmdbStore } from '@gpuwhisk/common/store/lmdb-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { openCouchdbStore } from '@gpuwhisk/engines/couchdb/couchdb-store';
import { guest } from './standalone-identities.js';

/** The store that the configuration asks for: CouchDB, or LMDB in `folder`. */
export function openStore({ couchdb }: Config, folder: string, clock: Clock): Promise<ArtifactStore> {
  if (couchdb) return openCouchdbStore({ ...couchdb, clock });
  outliveFailedCommits();
  return openLmdbStore(folder);
}

/**
 * LMDB's binding makes a promise of its own with every commit and drops it: where the disk is full it would end the process,
 * though whoever wrote is told. Any other rejection that nobody handles ends it as ever.
 */
function outliveFailedCommits(): void {
  if (process.listeners('unhandledRejection').includes(ignoreFailedCommit)) return;
  process.on('unhandledRejection', ignoreFailedCommit);
}

function ignoreFailedCommit(reason: unknown): void {
  if (reason instanceof Error && 'commitError' in reason) return;
  throw reason;
}

/**
 * Whether the well-known accounts, whose keys everybody knows, belong into the store: into one of our own, and into an
 * empty CouchDB, which nobody could use otherwise; not into one that has other subjects only.
 */
export async function takesWellKnownAccounts({ couchdb }: Config, store: ArtifactStore): Promise<boolean> {
  if (couchdb === undefined) return true;
  const key = [guest.uuid, guest.key];
  const known = await store.query('subjects', { view: 'identities', startKey: key, endKey: key });
  return known.length > 0 || (await store.list('subjects', { limit: 1 })).length === 0;
}
