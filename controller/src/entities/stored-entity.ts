import {
  concurrentModification,
  corruptedEntity,
  isApiError,
  noSuchEntity,
  otherCollection,
} from '@gpuwhisk/common/errors';
import { EntityTypeError } from '@gpuwhisk/common/entities/action-codec';
import { MalformedError } from '@gpuwhisk/common/entities/malformed';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
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

/** As readStoredEntity; undefined if there is none. Throws ApiError (409, 500). */
export async function findStoredEntity<Entity>(
  store: ArtifactStore,
  id: string,
  decode: (document: StoredDocument) => Entity,
): Promise<Entity | undefined> {
  try {
    return await readStoredEntity(store, id, decode);
  } catch (error) {
    if (isApiError(error) && error.status === 404) return undefined;
    throw error;
  }
}

/** Creates or replaces an entity's document; resolves with its revision. Throws ApiError (409): another was faster. */
export async function writeEntity(store: ArtifactStore, document: StoredDocument): Promise<string> {
  try {
    return await store.put('whisks', document);
  } catch (error) {
    if (error instanceof DocumentConflictError) throw concurrentModification();
    throw error;
  }
}

/** Deletes an entity's document. Throws ApiError (409): another was faster. */
export async function deleteEntity(store: ArtifactStore, id: string, revision: string): Promise<void> {
  try {
    await store.delete('whisks', id, revision);
  } catch (error) {
    if (error instanceof DocumentConflictError || error instanceof NoDocumentError) throw concurrentModification();
    throw error;
  }
}
