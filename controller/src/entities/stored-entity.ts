import {
  concurrentModification,
  corruptedEntity,
  isApiError,
  noSuchEntity,
  otherCollection,
  malformedContent,
} from '@gpuwhisk/common/errors';
import { EntityTypeError } from '@gpuwhisk/common/entities/names';
import { MalformedError } from '@gpuwhisk/common/entities/malformed';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';

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

/** As readStoredEntity, but undefined for a missing entity. Throws ApiError (409, 500). */
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

/** Creates or replaces an entity's document; resolves with its revision. Throws ApiError (409) after a concurrent write. */
export async function writeEntity(store: ArtifactStore, document: StoredDocument): Promise<string> {
  try {
    return await store.put('whisks', document);
  } catch (error) {
    if (error instanceof DocumentConflictError) throw concurrentModification();
    throw error;
  }
}

/** Deletes an entity's document. Throws ApiError (409) after a concurrent write. */
export async function deleteEntity(store: ArtifactStore, id: string, revision: string): Promise<void> {
  try {
    await store.delete('whisks', id, revision);
  } catch (error) {
    if (error instanceof DocumentConflictError || error instanceof NoDocumentError) throw concurrentModification();
    throw error;
  }
}

/** The encrypted parameters that a PUT may contain. */
interface KnownParameters {
  /** Parameters of the stored action or package. */
  stored: readonly Parameter[];
  /** Parameters of the package around an action or behind a binding, which a GET also shows. */
  inherited: readonly Parameter[];
}

/**
 * The parameters of a PUT. An encrypted value is accepted only if a GET has shown it: a stored one is kept, an inherited one
 * stays with its package. Others are refused: the code's author could read another namespace's value, taken from a shared
 * package. Throws ApiError (400).
 */
export function acceptGiven(given: readonly Parameter[], { stored, inherited }: KnownParameters): Parameter[] {
  return given.flatMap((parameter) => {
    const { encryption, ...plain } = parameter;
    if (encryption === undefined) return [plain];
    const same = stored.find((one) => isSame(one, parameter));
    if (same !== undefined) return [{ ...parameter, ...(same.lockedIn !== undefined && { lockedIn: same.lockedIn }) }];
    if (inherited.some((one) => isSame(one, parameter))) return [];
    throw malformedContent(
      `The value of parameter '${parameter.key}' is encrypted and differs from the stored value. ` +
        'Send the value in plain text, or leave the parameter out.',
    );
  });
}

/** Whether any value is encrypted. */
export function hasEncrypted(given: readonly Parameter[] | undefined): boolean {
  return given?.some(({ encryption }) => encryption !== undefined) === true;
}

function isSame(one: Parameter, other: Parameter): boolean {
  return one.key === other.key && one.encryption === other.encryption && one.value === other.value;
}
