import { corruptedEntity, noSuchEntity, otherCollection } from '@gpuwhisk/common/errors';
import { EntityTypeError } from '@gpuwhisk/common/entities/action-codec';
import { MalformedError } from '@gpuwhisk/common/entities/malformed';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';

/** An entity of the store, read from its document by `decode`. Throws ApiError (404, 409, 500). */
export async function readStoredEntity<Entity>(
  store: ArtifactStore,
  id: string,
  decode: (document: StoredDocument) => Entity,
): Promise<Entity> {
  try {
    return decode(await store.get('whisks', id));
  } catch (error) {
    if (error instanceof NoDocumentError) throw noSuchEntity();
    if (error instanceof EntityTypeError) throw otherCollection();
    if (error instanceof MalformedError) throw corruptedEntity();
    throw error;
  }
}
