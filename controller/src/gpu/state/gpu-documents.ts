import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
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

/** A document of database `gpu`; undefined if there is none. Rejects if the store fails. */
export async function gpuDocument(store: ArtifactStore, id: string): Promise<StoredDocument | undefined> {
  try {
    return await store.get('gpu', id);
  } catch (error) {
    if (error instanceof NoDocumentError) return undefined;
    throw error;
  }
}
