import { fair, TooMuchWaits } from '@gpuwhisk/common/concurrency';
import { SwaggerError, changedMeanwhile, managementFailure, tooLargeApis } from '@gpuwhisk/common/gateway-errors';
import { overloaded } from '@gpuwhisk/common/errors';
import { newUuid } from '@gpuwhisk/common/ids';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject } from '@gpuwhisk/common/json';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { nextPiece } from '@gpuwhisk/common/system/pieces';
import type { Random } from '@gpuwhisk/common/system/random';
import { BoundedCache } from '../entities/bounded-cache.js';
import { compileApi } from './compile-api.js';
import type { CompiledApi } from './compile-api.js';
import { objectAt, textAt } from './swagger-document.js';
import type { TokenIssuers } from './api-policies.js';

/** A consumer's key to an API. */
export interface Subscription {
  /** SHA-256, hexadecimal; absent for a client without a secret. */
  secretHash?: string;
}

/** An API as stored: one document for each base path of a namespace. */
export interface ApiRecord {
  readonly artifactId: string;
  readonly namespace: string;
  /** The tenant in the API's URL: the uuid of the key that created the API, which OpenWhisk's tools call the space's. */
  readonly tenant: string;
  readonly basePath: string;
  readonly swagger: JsonObject;
  /** Keys by client id. */
  readonly subscriptions: Readonly<Record<string, Subscription>>;
}

/** A stored API, and its compiled form. */
export interface ServedApi {
  readonly record: ApiRecord;
  readonly compiled: CompiledApi;
}

/** A change of an API. */
export type ApiChange = Partial<Pick<ApiRecord, 'swagger' | 'subscriptions'>>;

const database = 'gpu';
const maxAttempts = 20;
/** Longest delay until another controller's change is visible here. */
const cacheBounds = { maxAgeMs: 2000, maxEntries: 10_000 };
/**
 * Bounds of all APIs of a namespace together: a call without a key has them read, if they were not read a moment ago, and has its path
 * looked for among all paths.
 */
export const most = { bytes: 2 * 1024 * 1024, paths: 2000 };
/** Changes at once, and those of one namespace that wait: each reads all APIs of its namespace. */
const [mostChanges, mostWaiting] = [4, 16];

/** The APIs of all namespaces. */
export class ApiRegistry {
  private readonly byTenant: BoundedCache<ServedApi[]>;
  private readonly inTurn = fair(mostChanges, mostWaiting);

  constructor(
    private readonly context: {
      store: ArtifactStore;
      clock: Clock;
      random: Random;
      logger: Logger;
      issuers: TokenIssuers;
    },
  ) {
    this.byTenant = new BoundedCache(context.clock, cacheBounds);
  }

  /** A namespace's APIs, ordered by base path. */
  listOf(namespace: string): Promise<ApiRecord[]> {
    return this.query('namespace', namespace);
  }

  /** The APIs below `/api/<tenant>`, at most two seconds old. `tenant` is a uuid, or else the name of a namespace. */
  servedBy(tenant: string): Promise<readonly ServedApi[]> {
    return this.byTenant.resolve(tenant, async () => {
      const found = await this.query('tenant', tenant);
      const records = found.length > 0 ? found : await this.query('namespace', tenant);
      const served: ServedApi[] = [];
      for (const record of records) {
        await nextPiece(this.context.clock);
        served.push(...this.compile(record));
      }
      return served;
    });
  }

  /**
   * Creates or changes the namespace's API at a base path. `change` gets the current API (undefined for a new one). It is
   * called again after a conflict with another write; its errors are passed on. Throws ApiError (502) after too many
   * conflicts, and for an API that grows beyond what those of a namespace may have; 503 if too many changes wait.
   */
  async put(identity: Identity, basePath: string, change: (before?: ApiRecord) => ApiChange): Promise<ApiRecord> {
    try {
      return await this.inTurn(identity.namespace.name, () => this.putNow(identity, basePath, change));
    } catch (error) {
      throw error instanceof TooMuchWaits ? overloaded() : error;
    }
  }

  private async putNow(
    identity: Identity,
    basePath: string,
    change: (before?: ApiRecord) => ApiChange,
  ): Promise<ApiRecord> {
    return await this.retry(async () => {
      const document = await this.read(identity.namespace.name, basePath);
      const before = document && recordOf(document);
      const { name: namespace, uuid } = identity.namespace;
      const made = {
        artifactId: newUuid(this.context.random),
        namespace,
        tenant: uuid,
        basePath,
        swagger: {},
        subscriptions: {},
      };
      const sizeBefore = before && sizeOf(before);
      // It may change what it is given.
      const record: ApiRecord = { ...(before ?? made), ...change(before) };
      await this.checkSize(record, sizeBefore);
      await this.context.store.put(database, documentOf(record, document));
      this.forget(record);
      return record;
    });
  }

  /** Deletes an API; a missing API is no error. Throws ApiError (502) after too many conflicts. */
  async delete({ namespace, basePath }: ApiRecord): Promise<void> {
    await this.retry(async () => {
      const document = await this.read(namespace, basePath);
      if (document === undefined) return;
      await this.context.store.delete(database, document._id, String(document._rev));
      this.forget(recordOf(document));
    });
  }

  private async query(by: 'namespace' | 'tenant', value: string): Promise<ApiRecord[]> {
    const key = [by, value];
    const rows = await this.context.store.query(database, { view: 'apis', startKey: key, endKey: key });
    const records: ApiRecord[] = [];
    for (const { id } of rows) {
      await nextPiece(this.context.clock);
      const document = await this.document(id);
      if (document !== undefined) records.push(recordOf(document));
    }
    return records;
  }

  /** Throws ApiError (502) if an API that has grown exceeds what those of its namespace may have together. */
  private async checkSize(record: ApiRecord, before: ApiSize = { bytes: 0, paths: 0 }): Promise<void> {
    const sum = sizeOf(record);
    if (sum.bytes <= before.bytes && sum.paths <= before.paths) return;
    for (const other of await this.query('namespace', record.namespace)) {
      if (other.basePath === record.basePath) continue;
      const { bytes, paths } = sizeOf(other);
      sum.bytes += bytes;
      sum.paths += paths;
    }
    if (sum.bytes > most.bytes || sum.paths > most.paths) throw managementFailure(tooLargeApis(sum, most));
  }

  private read(namespace: string, basePath: string): Promise<StoredDocument | undefined> {
    return this.document(documentId(namespace, basePath));
  }

  private async document(id: string): Promise<StoredDocument | undefined> {
    try {
      return await this.context.store.get(database, id);
    } catch (error) {
      if (error instanceof NoDocumentError) return undefined;
      throw error;
    }
  }

  /**
   * Compiles an API, or returns an empty list. One that can no longer be served (its issuer was removed from the
   * configuration) must not affect the others.
   */
  private compile(record: ApiRecord): ServedApi[] {
    const { issuers, logger } = this.context;
    try {
      return [{ record, compiled: compileApi(record.swagger, issuers) }];
    } catch (error) {
      if (!(error instanceof SwaggerError)) throw error;
      logger.error({ err: error, namespace: record.namespace, basePath: record.basePath }, 'an API cannot be served');
      return [];
    }
  }

  private forget({ tenant, namespace }: ApiRecord): void {
    this.byTenant.drop(tenant);
    this.byTenant.drop(namespace);
  }

  private async retry<Result>(attempt: () => Promise<Result>): Promise<Result> {
    for (let attempts = 0; attempts < maxAttempts; attempts++) {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof DocumentConflictError || error instanceof NoDocumentError)) throw error;
      }
    }
    throw managementFailure(changedMeanwhile());
  }
}

interface ApiSize {
  bytes: number;
  paths: number;
}

/** What an API counts for among those of its namespace. */
export function sizeOf({ swagger, subscriptions }: Pick<ApiRecord, 'swagger' | 'subscriptions'>): ApiSize {
  const bytes = Buffer.byteLength(JSON.stringify([swagger, subscriptions]));
  return { bytes, paths: Object.keys(objectAt(swagger, 'paths') ?? {}).length };
}

function documentId(namespace: string, basePath: string): string {
  return `api/${namespace}${basePath}`;
}

function documentOf(record: ApiRecord, before: StoredDocument | undefined): StoredDocument {
  const { artifactId, namespace, tenant, basePath, swagger } = record;
  const subscriptions = Object.fromEntries(
    Object.entries(record.subscriptions).map(([clientId, subscription]) => [clientId, { ...subscription }]),
  );
  const fields = { kind: 'api', artifactId, namespace, tenant, basePath, swagger, subscriptions };
  const stored: StoredDocument = { _id: documentId(namespace, basePath), ...fields };
  if (before?._rev !== undefined) stored._rev = before._rev;
  return stored;
}

function recordOf(document: StoredDocument): ApiRecord {
  const text = (field: string): string => {
    const value = textAt(document, field);
    if (value === undefined) throw new Error(`the API '${document._id}' cannot be read: no ${field}`);
    return value;
  };
  const subscriptions: Record<string, Subscription> = {};
  for (const [clientId, subscription] of Object.entries(objectAt(document, 'subscriptions') ?? {})) {
    const secretHash = isJsonObject(subscription) ? textAt(subscription, 'secretHash') : undefined;
    subscriptions[clientId] = secretHash === undefined ? {} : { secretHash };
  }
  return {
    artifactId: text('artifactId'),
    namespace: text('namespace'),
    tenant: text('tenant'),
    basePath: text('basePath'),
    swagger: objectAt(document, 'swagger') ?? {},
    subscriptions,
  };
}
