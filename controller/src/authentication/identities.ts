import { credentialsInvalid, credentialsMissing, noSuchEntity } from '@gpuwhisk/common/errors';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { readUserLimits } from '@gpuwhisk/common/entities/identity-codec';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject } from '@gpuwhisk/common/json';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore, StoredDocument, ViewRow } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { BoundedCache } from '../entities/bounded-cache.js';

/** An account that may call: one namespace and its key. */
export interface NewIdentity {
  subject: string;
  namespace: string;
  uuid: string;
  /** 64 characters. */
  key: string;
}

/** What OpenWhisk allows every identity of its database. */
const rights = ['READ', 'PUT', 'DELETE', 'ACTIVATE'];

/** Characters of a key, exactly. */
export const keyLength = 64;
/** Characters of a subject's name, at least. */
export const minSubjectLength = 5;

/** OpenWhisk's identity cache. */
const cacheBounds = { maxAgeMs: 5 * 60_000, maxEntries: 100_000 };

/** Longest Authorization header that can hold valid credentials, with room to spare. */
const maxHeaderLength = 1024;

/** Tells who calls, by the identities of the subjects database. */
export class Identities {
  private readonly cache: BoundedCache<Identity>;
  private readonly owners: BoundedCache<Identity>;

  constructor(
    private readonly store: ArtifactStore,
    clock: Clock,
  ) {
    this.cache = new BoundedCache(clock, cacheBounds);
    this.owners = new BoundedCache(clock, cacheBounds);
  }

  /** The caller with this Authorization header, if it was authenticated within the last five minutes. */
  cached(authorization: string | undefined): Identity | undefined {
    return authorization === undefined ? undefined : this.cache.get(authorization);
  }

  /** The caller with this Authorization header. Throws ApiError (401). */
  async authenticate(authorization: string | undefined): Promise<Identity> {
    if (authorization === undefined || !/^basic /i.test(authorization)) throw credentialsMissing();
    const known = this.cache.get(authorization);
    if (known !== undefined) return known;
    if (authorization.length > maxHeaderLength) throw credentialsInvalid();
    return this.cache.resolve(authorization, () => this.lookUp(authorization));
  }

  /** The owner of a namespace, if looked up within the last five minutes. */
  cachedOwner(namespace: string): Identity | undefined {
    return this.owners.get(namespace);
  }

  /** The owner of a namespace, at most five minutes old. Throws ApiError (404), for blocked subjects too. */
  ofNamespace(namespace: string): Promise<Identity> {
    return this.owners.resolve(namespace, async () => {
      const viewKey = [namespace];
      const query = { view: 'identities', startKey: viewKey, endKey: viewKey, limit: 1, includeDocs: true } as const;
      const [row] = await this.store.query('subjects', query);
      if (row === undefined) throw noSuchEntity();
      return identityOf(row);
    });
  }

  /** Forgets who was authenticated: subjects, keys or limits have changed. */
  forget(): void {
    this.cache.clear();
    this.owners.clear();
  }

  private async lookUp(authorization: string): Promise<Identity> {
    const credentials = Buffer.from(authorization.slice('basic '.length).trim(), 'base64').toString('utf8');
    const colon = credentials.indexOf(':');
    const uuid = credentials.slice(0, Math.max(colon, 0));
    const key = credentials.slice(colon + 1);
    if (uuid.trim() === '' || key.length !== keyLength) throw credentialsInvalid();
    const viewKey = [uuid, key];
    const rows = await this.store.query('subjects', {
      view: 'identities',
      startKey: viewKey,
      endKey: viewKey,
      limit: 2,
      includeDocs: true,
    });
    const [row] = rows;
    if (row === undefined) throw credentialsInvalid();
    if (rows.length > 1) throw new Error(`the key ${uuid} belongs to several namespaces`);
    return identityOf(row);
  }
}

function identityOf(row: ViewRow): Identity {
  const { id, value, doc } = row;
  if (!isJsonObject(value)) throw new Error(`the identity of subject '${id}' cannot be read`);
  const { namespace, uuid, key } = value;
  if (typeof namespace !== 'string' || typeof uuid !== 'string' || typeof key !== 'string') {
    throw new Error(`the identity of subject '${id}' cannot be read`);
  }
  return {
    subject: id,
    namespace: { name: namespace, uuid },
    authkey: { api_key: `${uuid}:${key}` },
    rights,
    limits: readUserLimits(doc),
  };
}

/** Stores an identity, in the subject's document beside its other namespaces; one that is there stays as it is. */
export async function putIdentity(store: ArtifactStore, identity: NewIdentity): Promise<void> {
  const { subject, namespace, uuid, key } = identity;
  if (subject.length < minSubjectLength)
    throw new Error(`Subject name must be at least ${minSubjectLength} characters`);
  if (key.length !== keyLength) throw new Error(`The key must be ${keyLength} characters`);
  const document = await subjectDocument(store, subject);
  const namespaces = Array.isArray(document.namespaces) ? document.namespaces : [];
  if (namespaces.some((owned) => isJsonObject(owned) && owned.name === namespace)) return;
  const added: JsonObject = { name: namespace, uuid, key };
  await store.put('subjects', { ...document, subject, namespaces: [...namespaces, added] });
}

async function subjectDocument(store: ArtifactStore, subject: string): Promise<StoredDocument> {
  try {
    return await store.get('subjects', subject);
  } catch (error) {
    if (error instanceof NoDocumentError) return { _id: subject };
    throw error;
  }
}
