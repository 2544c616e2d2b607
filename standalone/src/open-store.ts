import type { Config } from '@gpuwhisk/common/config';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { openLmdbStore } from '@gpuwhisk/common/store/lmdb-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { openCouchdbStore } from '@gpuwhisk/engines/couchdb/couchdb-store';
import { guest } from './standalone-identities.js';

/** The store that the configuration asks for: CouchDB, or LMDB in `folder`. */
export function openStore({ couchdb }: Config, folder: string, clock: Clock): Promise<ArtifactStore> {
  return couchdb ? openCouchdbStore({ ...couchdb, clock }) : openLmdbStore(folder);
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
