// Packages in the store: cache, writer, PUT body, and contents.
import type { PackageBinding, WhiskPackage } from '@gpuwhisk/common/entities/package';
import { packageId, readPackage, packageDocument, writeBinding, readBinding } from '@gpuwhisk/common/entities/package';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { nextPiece } from '@gpuwhisk/common/system/pieces';
import {
  alreadyExists,
  bindingDoesNotExist,
  bindingToBinding,
  bindingToOther,
  concurrentModification,
  isApiError,
  noSuchEntity,
  notAllowedOnBinding,
  packageNotBindable,
  packageNotEmpty,
} from '@gpuwhisk/common/errors';
import type { LockParameters } from '@gpuwhisk/common/entities/parameter-encryption';
import { mergeParameters, parametersBytes, readParameters } from '@gpuwhisk/common/entities/parameters';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import { bumpPatch, firstVersion, readVersion } from '@gpuwhisk/common/entities/names';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import { KeyGate } from '@gpuwhisk/common/store/key-queue';
import type { LimitBounds } from '@gpuwhisk/common/entities/limits';
import { asBoolean, asObject } from '@gpuwhisk/common/entities/malformed';
import type { JsonValue } from '@gpuwhisk/common/json';
import { isJsonObject } from '@gpuwhisk/common/json';
import { BoundedCache } from '../entities/bounded-cache.js';
import { readStoredEntity, acceptGiven, hasEncrypted } from '../entities/stored-entity.js';
import { checkFieldSize, optionalField, readFields, withoutAbsent, afterAll } from '../http/request.js';

/** OpenWhisk's entity cache forgets after five minutes; the bound on entries is ours. */
const cacheBounds = { maxAgeMs: 5 * 60_000, maxEntries: 10_000 };

/** Cache of recently used or written packages and bindings. */
export class PackageCache {
  private readonly cache: BoundedCache<WhiskPackage>;

  constructor(
    private readonly store: ArtifactStore,
    clock: Clock,
    /** Called with the id of each entity that this controller has changed. */
    private readonly onChange: (id: string) => void = () => undefined,
  ) {
    this.cache = new BoundedCache(clock, cacheBounds);
  }

  /** The package, or undefined if the cache lacks it. */
  cached(name: PackageBinding): WhiskPackage | undefined {
    return this.cache.get(packageId(name));
  }

  /** The package. Throws ApiError (404, 409, 500). */
  resolve(name: PackageBinding): Promise<WhiskPackage> {
    const id = packageId(name);
    return this.cache.resolve(id, () => readStoredEntity(this.store, id, readPackage));
  }

  /** Caches a package that was just written. */
  written(stored: WhiskPackage): void {
    const id = packageId(stored);
    this.cache.set(id, stored);
    this.onChange(id);
  }

  /** Removes from the cache a package that was or may have been changed. */
  drop(name: PackageBinding): void {
    const id = packageId(name);
    this.cache.drop(id);
    this.onChange(id);
  }

  /** Removes from the cache the package that another controller has changed. */
  changedElsewhere(id: string): void {
    this.cache.drop(id);
  }
}

/** Deletes an action of a package, like ActionWriter. Rejects with ApiError (404 for an action that is already deleted). */
interface ActionDeleter {
  delete(namespace: string, name: string): Promise<unknown>;
}

/** Most actions of a package that are deleted concurrently. */
const deletesAtOnce = 16;

/** Writes and deletes packages and bindings. */
export class PackageWriter {
  /** Serialises the writes of a package, and excludes them during writes of its actions. */
  private readonly gate = new KeyGate();

  constructor(
    private readonly store: ArtifactStore,
    private readonly cache: PackageCache,
    private readonly actions: ActionDeleter,
    private readonly lock: LockParameters,
    private readonly clock: Clock,
  ) {}

  /** Creates a package, or updates it if `overwrite` is set. Resolves with the package. Throws ApiError. */
  put(name: PackageBinding, put: PackagePut, overwrite: boolean, nowMs: number): Promise<WhiskPackage> {
    return this.gate.own(packageId(name), async () => {
      const stored = await this.readIfThere(name);
      if (stored !== undefined && !overwrite) throw alreadyExists();
      if (put.binding !== undefined) {
        if (stored !== undefined && stored.binding === undefined) throw packageNotBindable();
        await this.checkBinding(put.binding);
      }
      const accepted = hasEncrypted(put.parameters) ? await this.accept(put, stored) : put;
      return this.write(
        stored === undefined ? makePackage(name, accepted, nowMs) : updatePackage(stored, accepted, nowMs),
      );
    });
  }

  /** The package, if it can contain actions. Throws ApiError (400 for a binding, 404, 409, 500). */
  async checkPlace(name: PackageBinding): Promise<WhiskPackage> {
    const found = await this.cache.resolve(name);
    if (found.binding !== undefined) throw notAllowedOnBinding();
    return found;
  }

  /** Writes an action of a package, which is not deleted during the write. Throws as checkPlace and `write` do. */
  writeInside<Result>(name: PackageBinding, write: () => Promise<Result>): Promise<Result> {
    return this.gate.use(packageId(name), async () => {
      await this.checkPlace(name);
      return write();
    });
  }

  /**
   * Deletes a package; `force` first deletes its actions, which are read on behalf of `reader`. Resolves with the deleted package.
   * Throws ApiError, and as ArtifactStore.texts.
   */
  delete(name: PackageBinding, force: boolean, reader: string): Promise<WhiskPackage> {
    return this.gate.own(packageId(name), async () => {
      const stored = await this.read(name);
      if (stored.binding === undefined) await this.empty(name, force, reader);
      this.cache.drop(name);
      try {
        await this.store.delete('whisks', packageId(name), stored.revision);
      } catch (error) {
        if (error instanceof DocumentConflictError || error instanceof NoDocumentError) throw concurrentModification();
        throw error;
      } finally {
        this.cache.drop(name);
      }
      return stored;
    });
  }

  private read(name: PackageBinding): Promise<WhiskPackage> {
    return readStoredEntity(this.store, packageId(name), readPackage);
  }

  private async readIfThere(name: PackageBinding): Promise<WhiskPackage | undefined> {
    try {
      return await this.read(name);
    } catch (error) {
      if (isApiError(error) && error.status === 404) return undefined;
      throw error;
    }
  }

  /** Refuses a binding to anything other than a package with its own actions. */
  private async checkBinding(binding: PackageBinding): Promise<void> {
    try {
      if ((await this.read(binding)).binding === undefined) return;
    } catch (error) {
      throw bindingRefusal(error);
    }
    throw bindingToBinding();
  }

  /** The PUT with its encrypted parameters, which are accepted only if a GET has shown them. Throws ApiError (400). */
  private async accept(put: PackagePut, stored: WhiskPackage | undefined): Promise<PackagePut> {
    const binding = put.binding ?? stored?.binding;
    const bound = binding && (await this.readIfThere(binding));
    const known = { stored: stored?.parameters ?? [], inherited: bound?.parameters ?? [] };
    return { ...put, parameters: acceptGiven(put.parameters ?? [], known) };
  }

  private async write(written: WhiskPackage): Promise<WhiskPackage> {
    this.cache.drop(written);
    try {
      const locked = { ...written, parameters: this.lock(written.parameters, packageId(written)) };
      const revision = await this.store.put('whisks', packageDocument(locked));
      this.cache.written({ ...locked, revision });
      // The answer has the parameters as the caller gave them, not as they are stored.
      return { ...written, revision };
    } catch (error) {
      if (error instanceof DocumentConflictError) throw concurrentModification();
      throw error;
    }
  }

  private async empty(name: PackageBinding, force: boolean, reader: string): Promise<void> {
    const names: string[] = [];
    const { store, clock } = this;
    for await (const some of packageContents({ store, clock }, name, reader)) {
      names.push(...some.map((action) => action.name));
    }
    if (names.length > 0 && !force) throw packageNotEmpty(names.length);
    const deleteNext = async (): Promise<void> => {
      for (let action = names.pop(); action !== undefined; action = names.pop()) {
        await this.actions.delete(packageId(name), action).catch((error: unknown) => {
          // Another request has deleted the action meanwhile.
          if (!isApiError(error) || error.status !== noSuchEntity().status) throw error;
        });
      }
    };
    await Promise.all(Array.from({ length: deletesAtOnce }, deleteNext));
  }
}

/** The error for a binding to a package that could not be read. */
export function bindingRefusal(error: unknown): unknown {
  if (!isApiError(error)) return error;
  if (error.status === 404) return bindingDoesNotExist();
  return error.status === 409 ? bindingToOther() : error;
}

function makePackage({ namespace, name }: PackageBinding, put: PackagePut, nowMs: number): WhiskPackage {
  return {
    namespace,
    name,
    ...(put.binding !== undefined && { binding: put.binding }),
    parameters: put.parameters ?? [],
    version: put.version ?? firstVersion,
    publish: put.publish ?? false,
    annotations: withBinding(put.annotations ?? [], put.binding),
    updated: nowMs,
    revision: '',
  };
}

function updatePackage(stored: WhiskPackage, put: PackagePut, nowMs: number): WhiskPackage {
  const binding = put.binding ?? stored.binding;
  return {
    ...stored,
    ...(binding !== undefined && { binding }),
    parameters: put.parameters ?? stored.parameters,
    version: put.version ?? bumpPatch(stored.version),
    publish: put.publish ?? stored.publish,
    annotations: withBinding(put.annotations ?? stored.annotations, binding),
    updated: nowMs,
  };
}

/** Sets annotation `binding`, which always repeats the package's field. */
function withBinding(annotations: readonly Parameter[], binding: PackageBinding | undefined): Parameter[] {
  const given = annotations.filter(({ key }) => key !== 'binding');
  if (binding === undefined) return given;
  return mergeParameters(given, [{ key: 'binding', value: writeBinding(binding) }]);
}

/** The body of a package's PUT. An absent field keeps its stored value, or has its default in a new package. */
interface PackagePut {
  binding?: PackageBinding;
  parameters?: Parameter[];
  version?: string;
  publish?: boolean;
  annotations?: Parameter[];
}

/**
 * Reads a PUT body; namespace `_` of a binding becomes `namespace`. Large fields are read and measured before the others.
 * Unknown fields are ignored. Throws ApiError (400, 413).
 */
export function readPackagePut(
  body: JsonValue,
  namespace: string,
  { maxParameters }: Pick<LimitBounds, 'maxParameters'>,
): PackagePut {
  return readFields(() => {
    const fields = asObject(body, "Object expected in field 'binding'");
    const parameters = optionalField(fields.parameters, readParameters);
    const annotations = optionalField(fields.annotations, readParameters);
    if (parameters !== undefined) checkFieldSize('parameters', parametersBytes(parameters), maxParameters);
    if (annotations !== undefined) checkFieldSize('annotations', parametersBytes(annotations), maxParameters);
    const binding = fields.binding === undefined ? undefined : readBinding(fields.binding);
    return withoutAbsent<PackagePut>({
      binding: binding?.namespace === '_' ? { ...binding, namespace } : binding,
      parameters,
      version: optionalField(fields.version, readVersion),
      publish: optionalField(fields.publish, asBoolean),
      annotations,
    });
  });
}

/** An action in the list of its package. */
export interface PackagedAction {
  name: string;
  version: JsonValue;
  annotations: JsonValue;
}

/** The actions of a package, last written first, some at a time, read on behalf of `reader`. Throws as ArtifactStore.texts. */
export async function* packageContents(
  { store, clock }: { store: Pick<ArtifactStore, 'texts'>; clock: Clock },
  name: PackageBinding,
  reader: string,
): AsyncGenerator<PackagedAction[]> {
  const path = packageId(name);
  const range = { view: 'actions', startKey: [path, 0], endKey: [path, afterAll, afterAll] } as const;
  for await (const texts of store.texts('whisks', { ...range, descending: true, as: 'value', reader })) {
    await nextPiece(clock);
    const rows = JSON.parse(`[${Buffer.from(texts).toString('utf8')}]`) as JsonValue[];
    yield rows.flatMap((value) => {
      if (!isJsonObject(value) || typeof value.name !== 'string') return [];
      return [{ name: value.name, version: value.version ?? null, annotations: value.annotations ?? [] }];
    });
  }
}

/** Whether an action is a feed: it has annotation `feed`, with any value. */
export function isFeed({ annotations }: PackagedAction): boolean {
  return Array.isArray(annotations) && annotations.some((each) => isJsonObject(each) && each.key === 'feed');
}
