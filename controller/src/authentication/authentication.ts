// Identities of namespaces, and authentication of callers as an identity or as an operator.
import { createHash, timingSafeEqual } from 'node:crypto';
import {
  credentialsInvalid,
  credentialsMissing,
  isApiError,
  noSuchEntity,
  notOfNamespace,
  operatorsOnly,
} from '@gpuwhisk/common/errors';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { readUserLimits, hasPublishedSecret } from '@gpuwhisk/common/entities/identity';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject } from '@gpuwhisk/common/json';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore, StoredDocument, ViewRow } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Config } from '@gpuwhisk/common/config';
import { transactionLogger } from '@gpuwhisk/common/logging';
import type { Logger } from '@gpuwhisk/common/logging';
import { BoundedCache } from '../entities/bounded-cache.js';
import type { Call } from '../http/route.js';

/** An account: a subject's namespace and its key. */
interface NewIdentity {
  subject: string;
  namespace: string;
  uuid: string;
  /** The secret part of the key, 64 characters. */
  key: string;
}

/** The rights of every identity, as in OpenWhisk's database. */
const rights = ['READ', 'PUT', 'DELETE', 'ACTIVATE'];

/** Length of a key, characters. */
export const keyLength = 64;
/** Shortest name of a subject, characters. */
export const minSubjectLength = 5;

/** The bounds of OpenWhisk's identity cache. */
const cacheBounds = { maxAgeMs: 5 * 60_000, maxEntries: 100_000 };

/** Longest Authorization header that is read, characters; valid credentials are much shorter. */
const maxHeaderLength = 1024;

/** Finds callers in the subjects database. */
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

  /** The caller with this Authorization header, if the caller was authenticated within the last five minutes. */
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

  /** As `authenticate`, but undefined for missing or wrong credentials. */
  async find(authorization: string | undefined): Promise<Identity | undefined> {
    try {
      return await this.authenticate(authorization);
    } catch (error) {
      if (isApiError(error) && error.status === 401) return undefined;
      throw error;
    }
  }

  /** The owner of a namespace, if the owner was looked up within the last five minutes. */
  cachedOwner(namespace: string): Identity | undefined {
    return this.owners.get(namespace);
  }

  /** The owner of a namespace, from a cache of at most five minutes. Throws ApiError (404), also for blocked subjects. */
  ofNamespace(namespace: string): Promise<Identity> {
    return this.owners.resolve(namespace, async () => {
      const viewKey = [namespace];
      const query = { view: 'identities', startKey: viewKey, endKey: viewKey, limit: 1, includeDocs: true } as const;
      const [row] = await this.store.query('subjects', query);
      if (row === undefined) throw noSuchEntity();
      return identityOf(row);
    });
  }

  /** Empties the cache after a change of subjects, keys or limits. */
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

/** Stores an identity in its subject's document, beside other namespaces. An existing identity is not changed. */
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

/** The caller of a route for both namespaces and operators. */
interface ViewerIdentity {
  identity: Identity;
  isOperator: boolean;
}

/** Finds the sender of a request by its Authorization header. All methods reject with ApiError (401). */
export interface Authentication {
  /** The namespace's account. Rejects with ApiError (403) for the operator's key, which has no namespace. */
  namespace(authorization: string | undefined): Promise<Identity>;
  /** The namespace's account, or an operator. */
  viewer(authorization: string | undefined): Promise<ViewerIdentity>;
  /** An operator. Requests that change something are logged. Rejects with ApiError (403) for other callers. */
  operator(
    authorization: string | undefined,
    call: Pick<Call, 'request' | 'transactionId' | 'params'>,
  ): Promise<Identity>;
}

/**
 * Identity of the operator's key, which stands in the configuration only. No namespace can have this name, so that no check
 * takes a namespace's entity for the operator's.
 */
const keyHolder: Identity = {
  subject: '(operator)',
  namespace: { name: '(operator)', uuid: '(operator)' },
  authkey: { api_key: '' },
  rights: [],
  limits: {},
};

/** Whether the caller is of a namespace, which one with the operator's key is not. */
export function isOfNamespace({ subject }: Identity): boolean {
  return subject !== keyHolder.subject;
}

/**
 * Authentication on a listener that operators reach. An operator has the `operatorKey` or is a subject in `operators`. Keys
 * published in OpenWhisk's sources are never an operator's, whatever the configuration says.
 */
export function authenticateOperators(
  identities: Identities,
  { operatorKey, operators }: Pick<Config, 'operatorKey' | 'operators'>,
  logger: Logger,
): Authentication {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const expected = operatorKey === undefined ? undefined : digest(operatorKey);
  const isKey = (authorization: string | undefined): boolean => {
    const [, encoded] = /^basic +(\S+) *$/i.exec(authorization ?? '') ?? [];
    if (expected === undefined || encoded === undefined) return false;
    return timingSafeEqual(expected, digest(Buffer.from(encoded, 'base64').toString('utf8')));
  };
  const viewer = async (authorization: string | undefined): Promise<ViewerIdentity> => {
    if (isKey(authorization)) return { identity: keyHolder, isOperator: true };
    const identity = await identities.authenticate(authorization);
    const isOperator = operators.includes(identity.subject) && !hasPublishedSecret(identity.authkey.api_key);
    return { identity, isOperator };
  };
  return {
    namespace: async (authorization) => {
      const known = identities.cached(authorization);
      if (known !== undefined) return known;
      if (isKey(authorization)) throw notOfNamespace();
      return identities.authenticate(authorization);
    },
    viewer,
    async operator(authorization, { request, transactionId, params }) {
      const { identity, isOperator } = await viewer(authorization);
      if (!isOperator) throw operatorsOnly();
      if (request.method !== 'GET') {
        const line = { operator: identity.subject, method: request.method, params };
        transactionLogger(logger, transactionId, false).info(line, 'a change by an operator');
      }
      return identity;
    },
  };
}

/** Authentication on a listener that functions reach, where no key is an operator's. */
export function authenticateNamespaces(identities: Identities): Authentication {
  const namespace = (authorization: string | undefined): Promise<Identity> => identities.authenticate(authorization);
  return {
    namespace,
    viewer: async (authorization) => ({ identity: await namespace(authorization), isOperator: false }),
    operator: async (authorization) => {
      await namespace(authorization);
      throw operatorsOnly();
    },
  };
}
