import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Ledger } from './ledger.js';
import { withoutRevision } from './observers.js';

/**
 * Compares the records of the store with the ledger, and resolves with the ids of the records. Records may expire
 * `ttlMs` after their end; undefined if they never do. No process may be recording.
 */
export async function auditStore(
  store: Pick<ArtifactStore, 'get'>,
  ledger: Ledger,
  ttlMs: number | undefined,
): Promise<string[]> {
  const known = [...ledger.byActivation];
  const found = await Promise.all(
    known.map(([id, { namespace }]) =>
      store.get('activations', `${namespace}/${id}`).catch((error: unknown) => {
        if (error instanceof NoDocumentError) return undefined;
        throw error;
      }),
    ),
  );
  found.forEach((document, index) => {
    const id = known[index]?.[0] ?? '';
    if (document !== undefined) ledger.recorded(withoutRevision(document));
    else ledger.check(!ledger.isRecordDue(id, ttlMs), `the record of ${id} vanished`);
  });
  return known.flatMap(([id], index) => (found[index] === undefined ? [] : [id]));
}
