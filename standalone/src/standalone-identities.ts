import { guest, whiskSystem } from '@gpuwhisk/common/entities/identity';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import { putIdentity } from '@gpuwhisk/controller/authentication/authentication';

/** Limits of the well-known accounts: `standalone` stores some of their own, `openwhisk` leaves them the system's. */
export type AccountLimits = 'standalone' | 'openwhisk';

/** For one user on one machine: bounded, and far above OpenWhisk's, which are for many. */
const roomyLimits = { invocationsPerMinute: 1_000_000, concurrentInvocations: 1000, firesPerMinute: 1_000_000 };

/** Stores both accounts and, if they have none, their limits; `openwhisk` removes those. */
export async function installAccounts(store: ArtifactStore, limits: AccountLimits): Promise<void> {
  for (const account of [guest, whiskSystem]) {
    await putIdentity(store, account);
    const id = `${account.namespace}/limits`;
    if (limits === 'standalone') {
      await store.createMany('subjects', [{ _id: id, ...roomyLimits }]);
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
