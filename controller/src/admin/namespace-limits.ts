import { isLimitName, limitProblem } from '@gpuwhisk/common/entities/identity';
import { malformedContent, noSuchEntity } from '@gpuwhisk/common/errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import { refuseConflict } from './subjects.js';

/** Reads and changes the limits documents of the subjects database. `changed` is called after every change. */
export class NamespaceLimits {
  constructor(
    private readonly store: ArtifactStore,
    private readonly changed: () => Promise<void>,
  ) {}

  /** The limits that the namespace has of its own. Throws ApiError (404) where it has none. */
  async get(namespace: string): Promise<JsonObject> {
    const document = await this.document(namespace);
    if (document === undefined) throw noSuchEntity();
    return limitsOf(document);
  }

  /** Sets the limits that `body` names, and leaves the others; null removes one. Throws ApiError (400, 409). */
  async set(namespace: string, body: JsonValue): Promise<JsonObject> {
    if (!isJsonObject(body)) throw malformedContent('JSON object expected');
    const document: StoredDocument = (await this.document(namespace)) ?? { _id: documentId(namespace) };
    for (const [name, value] of Object.entries(body)) {
      if (!isLimitName(name)) throw malformedContent(`'${name}' is not a limit`);
      const wanted = value === null ? undefined : limitProblem(name, value);
      if (wanted !== undefined) throw malformedContent(`'${name}' must be ${wanted}`);
      if (value === null) delete document[name];
      else document[name] = value;
    }
    await this.store.put('subjects', document).catch(refuseConflict);
    await this.changed();
    return limitsOf(document);
  }

  /** Throws ApiError (404, 409). */
  async delete(namespace: string): Promise<void> {
    const document = await this.document(namespace);
    if (document === undefined) throw noSuchEntity();
    await this.store.delete('subjects', document._id, String(document._rev)).catch(refuseConflict);
    await this.changed();
  }

  private async document(namespace: string): Promise<StoredDocument | undefined> {
    try {
      return await this.store.get('subjects', documentId(namespace));
    } catch (error) {
      if (error instanceof NoDocumentError) return undefined;
      throw error;
    }
  }
}

function documentId(namespace: string): string {
  return `${namespace}/limits`;
}

function limitsOf(document: StoredDocument): JsonObject {
  return Object.fromEntries(Object.entries(document).filter(([name]) => isLimitName(name)));
}
