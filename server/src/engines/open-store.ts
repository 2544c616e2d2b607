import type { Config } from '@gpuwhisk/common/config';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { openLmdbStore } from '@gpuwhisk/common/store/lmdb-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { openCouchdbStore } from '@gpuwhisk/engines/couchdb/couchdb-store';

/** The store that the configuration asks for: CouchDB, or LMDB in `folder`. */
export function openStore(
  { couchdb }: Config,
  folder: string,
  { clock, logger }: { clock: Clock; logger: Logger },
): Promise<ArtifactStore> {
  if (couchdb) return openCouchdb(couchdb, clock, logger);
  outliveFailedCommits();
  return openLmdbStore(folder);
}

/** The store in a CouchDB; what of the server's configuration is known to harm is logged. */
export function openCouchdb(
  couchdb: NonNullable<Config['couchdb']>,
  clock: Clock,
  logger: Logger,
): Promise<ArtifactStore> {
  return openCouchdbStore({ ...couchdb, clock, onWarning: (warning) => logger.warn(`CouchDB: ${warning}`) });
}

/**
 * LMDB's binding makes a promise of its own with every commit and drops it: where the disk is full it would end the process,
 * though the writer gets the error. Any other unhandled rejection ends the process as usual.
 */
function outliveFailedCommits(): void {
  if (process.listeners('unhandledRejection').includes(ignoreFailedCommit)) return;
  process.on('unhandledRejection', ignoreFailedCommit);
}

function ignoreFailedCommit(reason: unknown): void {
  if (reason instanceof Error && 'commitError' in reason) return;
  throw reason;
}
