import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';

const pageSize = 200;

/** All documents of database `gpu` whose id begins with `prefix`, by id. Rejects if the store fails. */
export async function gpuDocuments(store: ArtifactStore, prefix: string): Promise<StoredDocument[]> {
  const found: StoredDocument[] = [];
  for (let after = prefix; ;) {
    const page = await store.list('gpu', { after, limit: pageSize });
    const documents = page.filter(({ _id: id }) => id.startsWith(prefix));
    found.push(...documents);
    const last = documents.at(-1);
    if (last === undefined || documents.length < pageSize) return found;
    after = last._id;
  }
}
