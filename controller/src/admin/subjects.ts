// Subjects with their namespaces and keys, and the limits of namespaces.
import {
  concurrentModification,
  malformedContent,
  namespaceExists,
  noSuchEntity,
  noSuchNamespace,
  subjectBlocked,
} from '@gpuwhisk/common/errors';
import { newKey, newUuid } from '@gpuwhisk/common/ids';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonValue, JsonObject } from '@gpuwhisk/common/json';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import type { Random } from '@gpuwhisk/common/system/random';
import { isLimitName, limitProblem } from '@gpuwhisk/common/entities/identity';
import { keyLength, minSubjectLength } from '../authentication/authentication.js';

/** A namespace of a subject, and its key. */
interface OwnedNamespace {
  name: string;
  uuid: string;
  key: string;
}

/** A subject as stored in its document. */
export interface Subject {
  subject: string;
  namespaces: OwnedNamespace[];
  blocked: boolean;
}

/** A request for a key of a subject to a namespace. */
export interface KeyRequest {
  subject: string;
  namespace: string;
  /** Absent: a random one. */
  uuid?: string;
  key?: string;
  /** Whether to replace an existing key of the subject for the namespace. */
  revoke: boolean;
}

/** A row of the identities: a namespace's key and its subject. */
type Owner = OwnedNamespace & { subject: string };

/** Reads and changes the subjects of OpenWhisk's subjects database. `changed` is called after every change. */
export class Subjects {
  constructor(
    private readonly store: ArtifactStore,
    private readonly random: Random,
    private readonly changed: () => Promise<void>,
  ) {}

  /** The subject. Throws ApiError (404). */
  async get(subject: string): Promise<Subject> {
    const document = await this.document(subject);
    if (document === undefined) throw noSuchEntity();
    return subjectOf(document);
  }

  /** Gives a subject a key for a namespace, and creates a missing subject. Throws ApiError (400, 409). */
  async putKey({ subject, namespace, uuid, key, revoke }: KeyRequest): Promise<Owner> {
    if (subject.length < minSubjectLength) {
      throw malformedContent(`Subject name must be at least ${minSubjectLength} characters`);
    }
    if (key !== undefined && key.length !== keyLength)
      throw malformedContent(`The key must be ${keyLength} characters`);
    if (uuid?.trim() === '') throw malformedContent('The uuid must not be blank');
    const document = (await this.document(subject)) ?? { _id: subject };
    const { namespaces, blocked } = subjectOf({ ...document, subject });
    if (blocked) throw subjectBlocked();
    const owned = { name: namespace, uuid: uuid ?? newUuid(this.random), key: key ?? newKey(this.random) };
    const others = namespaces.filter(({ name }) => name !== namespace);
    if (others.length < namespaces.length && !revoke) throw namespaceExists();
    await this.put({ ...document, subject, namespaces: [...others, owned].map((one) => ({ ...one })) });
    return { ...owned, subject };
  }

  /** Deletes a subject, or only its key for one namespace. Throws ApiError (404, 409). */
  async delete(subject: string, namespace: string | undefined): Promise<void> {
    const document = await this.document(subject);
    if (document === undefined) throw noSuchEntity();
    if (namespace === undefined) {
      await this.store.delete('subjects', subject, String(document._rev)).catch(refuseConflict);
      await this.changed();
      return;
    }
    const { namespaces } = subjectOf(document);
    const others = namespaces.filter(({ name }) => name !== namespace);
    if (others.length === namespaces.length) throw noSuchNamespace(namespace, subject);
    await this.put({ ...document, namespaces: others.map((one) => ({ ...one })) });
  }

  /** Blocks or unblocks a subject. Throws ApiError (404, 409). */
  async setBlocked(subject: string, blocked: boolean): Promise<Subject> {
    const document = await this.document(subject);
    if (document === undefined) throw noSuchEntity();
    const changed = { ...document, blocked };
    await this.put(changed);
    return subjectOf(changed);
  }

  /** The keys of a namespace, without those of blocked subjects. */
  async ofNamespace(namespace: string): Promise<Owner[]> {
    return this.owners([namespace]);
  }

  /** The owner of a key. Throws ApiError (404), also for blocked subjects. */
  async whois(uuid: string, key: string): Promise<Owner> {
    const [owner] = await this.owners([uuid, key]);
    if (owner === undefined) throw noSuchEntity();
    return owner;
  }

  private async owners(viewKey: string[]): Promise<Owner[]> {
    const rows = await this.store.query('subjects', { view: 'identities', startKey: viewKey, endKey: viewKey });
    return rows.flatMap(({ id, value }) => {
      if (!isJsonObject(value)) return [];
      const { namespace, uuid, key } = value;
      return [{ subject: id, name: String(namespace), uuid: String(uuid), key: String(key) }];
    });
  }

  private async document(subject: string): Promise<StoredDocument | undefined> {
    try {
      const document = await this.store.get('subjects', subject);
      // The same database holds documents of limits, which have no namespaces.
      return Array.isArray(document.namespaces) ? document : undefined;
    } catch (error) {
      if (error instanceof NoDocumentError) return undefined;
      throw error;
    }
  }

  private async put(document: StoredDocument): Promise<void> {
    await this.store.put('subjects', document).catch(refuseConflict);
    await this.changed();
  }
}

/** Throws ApiError (409) for a conflict, or for a document deleted during the change. Throws other errors unchanged. */
export function refuseConflict(error: unknown): never {
  if (error instanceof DocumentConflictError || error instanceof NoDocumentError) throw concurrentModification();
  throw error;
}

function subjectOf({ _id: id, subject, namespaces, blocked }: StoredDocument): Subject {
  return {
    subject: typeof subject === 'string' ? subject : id,
    namespaces: Array.isArray(namespaces) ? namespaces.flatMap(ownedNamespace) : [],
    blocked: blocked === true,
  };
}

function ownedNamespace(value: JsonValue): OwnedNamespace[] {
  if (!isJsonObject(value)) return [];
  const { name, uuid, key } = value;
  return typeof name === 'string' && typeof uuid === 'string' && typeof key === 'string' ? [{ name, uuid, key }] : [];
}

/** Reads and changes the limits documents of the subjects database. `changed` is called after every change. */
export class NamespaceLimits {
  constructor(
    private readonly store: ArtifactStore,
    private readonly changed: () => Promise<void>,
  ) {}

  /** The namespace's own limits. Throws ApiError (404) if the namespace has none. */
  async get(namespace: string): Promise<JsonObject> {
    const document = await this.document(namespace);
    if (document === undefined) throw noSuchEntity();
    return limitsOf(document);
  }

  /** Sets the limits that `body` names and keeps the others; null removes a limit. Throws ApiError (400, 409). */
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

  /** Deletes the namespace's own limits. Throws ApiError (404, 409). */
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
