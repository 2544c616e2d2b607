// Identities of a standalone server's first start: OpenWhisk's well-known accounts, and the operator with its own key.
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '@gpuwhisk/common/config';
import { guest, whiskSystem } from '@gpuwhisk/common/entities/identity';
import { newKey, newUuid } from '@gpuwhisk/common/ids';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import type { Random } from '@gpuwhisk/common/system/random';
import { putIdentity } from '@gpuwhisk/controller/authentication/authentication';
import { DataFolderError } from '@gpuwhisk/server/process/data-lock';

/** Limits of the well-known accounts: `standalone` stores limits for them, `openwhisk` leaves them the system's. */
export type AccountLimits = 'standalone' | 'openwhisk';

/** Limits for one user on one machine: far above OpenWhisk's, which are for many users. */
const standaloneLimits = { invocationsPerMinute: 1_000_000, concurrentInvocations: 1000, firesPerMinute: 1_000_000 };

/**
 * Whether the well-known accounts, whose keys are public, belong into the store. True for an embedded store and for an
 * empty CouchDB, which could not be used otherwise; false for a CouchDB that has other subjects only.
 */
export async function takesWellKnownAccounts({ couchdb }: Config, store: ArtifactStore): Promise<boolean> {
  if (couchdb === undefined) return true;
  const key = [guest.uuid, guest.key];
  const known = await store.query('subjects', { view: 'identities', startKey: key, endKey: key });
  return known.length > 0 || (await store.list('subjects', { limit: 1 })).length === 0;
}

/** Stores both accounts and, if they have none, their limits; `openwhisk` removes the limits. */
export async function installAccounts(store: ArtifactStore, limits: AccountLimits): Promise<void> {
  for (const account of [guest, whiskSystem]) {
    await putIdentity(store, account);
    const id = `${account.namespace}/limits`;
    if (limits === 'standalone') {
      await store.createMany('subjects', [{ _id: id, ...standaloneLimits }]);
      continue;
    }
    const stored = await documentOf(store, id);
    if (stored !== undefined) await store.delete('subjects', id, String(stored._rev));
  }
}

async function documentOf(store: ArtifactStore, id: string): Promise<StoredDocument | undefined> {
  try {
    return await store.get('subjects', id);
  } catch (error) {
    if (error instanceof NoDocumentError) return undefined;
    throw error;
  }
}

/** Name of the file in the data folder; `gpuwhisk operator-key` and wskadmin read it. */
const operatorKeyFile = 'operator.key';

/**
 * The operator's `uuid:secret` of a data folder, which this process has locked. A missing key is made, readable for its
 * owner alone. Throws DataFolderError for a file that others may read or that has no key.
 */
export function operatorKeyOf(folder: string, random: Random): string {
  const file = join(folder, operatorKeyFile);
  const kept = readOperatorKey(file);
  if (kept !== undefined) return kept;
  const key = `${newUuid(random)}:${newKey(random)}`;
  const written = openSync(`${file}.new`, 'w', 0o600);
  try {
    writeSync(written, `${key}\n`);
    fsyncSync(written);
  } finally {
    closeSync(written);
  }
  renameSync(`${file}.new`, file);
  return key;
}

function readOperatorKey(file: string): string | undefined {
  let mode: number;
  try {
    ({ mode } = statSync(file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  if ((mode & 0o077) !== 0) {
    const octal = (mode & 0o777).toString(8).padStart(4, '0');
    throw new DataFolderError(
      `The operator's key ${file} may be read by others (mode ${octal}). Delete the file, and a new key is made.`,
    );
  }
  const key = readFileSync(file, 'utf8').trim();
  if (!/^[^\s:]+:[^\s:]{64}$/.test(key)) {
    throw new DataFolderError(`The file ${file} has no key (uuid:secret). Delete it, and a new key is made.`);
  }
  return key;
}
