import { join } from 'node:path';
import { openLmdbStore } from '@gpuwhisk/common/store/lmdb-store';
import type { ArtifactStore, DatabaseName, StoredDocument } from '@gpuwhisk/common/store/artifact-store';

const batchDocuments = 1000;

/** Runs fillStore in the data folder of a stopped platform. */
export async function fillDataFolder(
  dataDir: string,
  name: string,
  counts: { actions: number; activations: number },
  namespace = 'guest',
): Promise<void> {
  const store = await openLmdbStore(join(dataDir, 'store'));
  try {
    await fillStore(store, name, counts, namespace);
  } finally {
    await store.close();
  }
}

/**
 * Copies the action `NAMESPACE/NAME` until there are `actions` copies, and its newest activation until there are
 * `activations`, each one second earlier. Copies of the platform's own documents stay valid when its format changes.
 */
export async function fillStore(
  store: ArtifactStore,
  name: string,
  counts: { actions: number; activations: number },
  namespace = 'guest',
): Promise<void> {
  const action = await store.get('whisks', `${namespace}/${name}`);
  await createCopies(store, 'whisks', action, counts.actions - 1, (copy, index) => {
    copy._id = `${namespace}/${name}${index}`;
    copy.name = `${name}${index}`;
  });
  const [newest] = await store.query('activations', {
    view: 'activations',
    startKey: [namespace, 0],
    endKey: [namespace, Number.MAX_SAFE_INTEGER],
    descending: true,
    limit: 1,
    includeDocs: true,
  });
  if (!newest?.doc) throw new Error('the store holds no activation to copy');
  const startMs = Number(newest.doc.start);
  await createCopies(store, 'activations', newest.doc, counts.activations - 1, (copy, index) => {
    const id = index.toString(16).padStart(32, '0');
    copy._id = `${namespace}/${id}`;
    copy.activationId = id;
    copy.start = startMs - (index + 1) * 1000;
    copy.end = Number(copy.start) + 2;
  });
}

async function createCopies(
  store: ArtifactStore,
  database: DatabaseName,
  template: StoredDocument,
  count: number,
  change: (copy: StoredDocument, index: number) => void,
): Promise<void> {
  for (let first = 0; first < count; first += batchDocuments) {
    const length = Math.min(batchDocuments, count - first);
    const copies = Array.from({ length }, (_, offset) => {
      const copy = structuredClone(template);
      delete copy._rev;
      change(copy, first + offset);
      return copy;
    });
    const created = await store.createMany(database, copies);
    if (!created.every(Boolean)) throw new Error('some documents were there already');
  }
}
