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
import type { PackageBinding, WhiskPackage } from '@gpuwhisk/common/entities/package';
import { packageDocument, packageId, readPackage, writeBinding } from '@gpuwhisk/common/entities/package-codec';
import type { LockParameters } from '@gpuwhisk/common/entities/parameter-encryption';
import { mergeParameters } from '@gpuwhisk/common/entities/parameters';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import { bumpPatch, firstVersion } from '@gpuwhisk/common/entities/version';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { KeyGate } from '@gpuwhisk/common/store/key-gate';
import { acceptGiven, hasEncrypted } from '../entities/given-parameters.js';
import { readStoredEntity } from '../entities/stored-entity.js';
import type { PackageCache } from './package-cache.js';
import { packageContents } from './package-contents.js';
import type { PackagePut } from './package-put.js';

/** Deletes an action of a package, as ActionWriter does. Rejects with ApiError (404 where it is gone already). */
export interface ActionDeleter {
  delete(namespace: string, name: string): Promise<unknown>;
}

/** Actions of a package that are deleted at once. */
const deletesAtOnce = 16;

/** Writes and deletes packages and bindings. */
export class PackageWriter {
  /** One write of a package at a time, and none while its actions are written. */
  private readonly gate = new KeyGate();

  constructor(
    private readonly store: ArtifactStore,
    private readonly cache: PackageCache,
    private readonly actions: ActionDeleter,
    private readonly lock: LockParameters,
  ) {}

  /** Creates or, where `overwrite`, updates a package; resolves with it. Throws ApiError. */
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

  /** The package as a place of actions. Throws ApiError (400, 404, 409, 500) where it is not there, or a binding. */
  async checkPlace(name: PackageBinding): Promise<WhiskPackage> {
    const found = await this.cache.resolve(name);
    if (found.binding !== undefined) throw notAllowedOnBinding();
    return found;
  }

  /** Writes an action of a package, which stays meanwhile. Throws as checkPlace and `write` do. */
  writeInside<Result>(name: PackageBinding, write: () => Promise<Result>): Promise<Result> {
    return this.gate.use(packageId(name), async () => {
      await this.checkPlace(name);
      return write();
    });
  }

  /** Deletes a package; where `force`, its actions before it. Resolves with what it was. Throws ApiError. */
  delete(name: PackageBinding, force: boolean): Promise<WhiskPackage> {
    return this.gate.own(packageId(name), async () => {
      const stored = await this.read(name);
      if (stored.binding === undefined) await this.empty(name, force);
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

  /** Refuses a binding to anything but a package with actions of its own. */
  private async checkBinding(binding: PackageBinding): Promise<void> {
    try {
      if ((await this.read(binding)).binding === undefined) return;
    } catch (error) {
      throw bindingRefusal(error);
    }
    throw bindingToBinding();
  }

  /** With encrypted parameters only where a GET has shown them. Throws ApiError (400). */
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
      // The caller gets back what it gave, not what is stored of it.
      return { ...written, revision };
    } catch (error) {
      if (error instanceof DocumentConflictError) throw concurrentModification();
      throw error;
    }
  }

  private async empty(name: PackageBinding, force: boolean): Promise<void> {
    const contents = await packageContents(this.store, name);
    if (contents.length > 0 && !force) throw packageNotEmpty(contents.length);
    const deleteNext = async (): Promise<void> => {
      for (let action = contents.pop(); action !== undefined; action = contents.pop()) {
        await this.actions.delete(packageId(name), action.name).catch((error: unknown) => {
          // Somebody else deleted it meanwhile.
          if (!isApiError(error) || error.status !== noSuchEntity().status) throw error;
        });
      }
    };
    await Promise.all(Array.from({ length: deletesAtOnce }, deleteNext));
  }
}

/** Why a binding cannot refer to a package that could not be read. */
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

/** Annotation `binding` is the platform's own: it says what the package's field says. */
function withBinding(annotations: readonly Parameter[], binding: PackageBinding | undefined): Parameter[] {
  const given = annotations.filter(({ key }) => key !== 'binding');
  if (binding === undefined) return given;
  return mergeParameters(given, [{ key: 'binding', value: writeBinding(binding) }]);
}
