import { sleep, systemClock } from '@gpuwhisk/common/system/clock';
import { StoreOpenError } from '@gpuwhisk/common/store/artifact-store';
import { openCouchdbStore } from '@gpuwhisk/engines/couchdb/couchdb-store';
import { grantInvokerAccess } from '@gpuwhisk/engines/couchdb/invoker-access';
import type { DatabasesConfig } from './flags.js';

/** A server that starts together with this process is waited for, ms. */
const waitMs = 60_000;
const againMs = 500;

/**
 * Makes the databases and views that are missing, and the account of invokers; what is there stays. Resolves with a line that
 * says so; rejects with StoreOpenError after a minute of tries.
 */
export async function makeDatabases({ couchdb, invoker }: DatabasesConfig): Promise<string> {
  const clock = systemClock;
  const untilMs = clock.monotonicMs() + waitMs;
  for (;;) {
    try {
      const store = await openCouchdbStore({ ...couchdb, clock });
      await store.close();
      const changed = await grantInvokerAccess({ ...couchdb, ...invoker, clock });
      return `The databases ${couchdb.prefix}* are there; the account ${invoker.user} ${changed ? 'was made' : 'is'} as it should be.`;
    } catch (error) {
      if (!(error instanceof StoreOpenError) || clock.monotonicMs() > untilMs) throw error;
    }
    await sleep(clock, againMs);
  }
}
