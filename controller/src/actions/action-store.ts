// Actions in the store: a cache without code for invocations, and their writer.
import type { WhiskAction, Exec } from '@gpuwhisk/common/entities/action';
import { actionId, readAction, withoutCode, actionDocument, withCode } from '@gpuwhisk/common/entities/action';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { alreadyExists, concurrentModification, isApiError } from '@gpuwhisk/common/errors';
import { storeCode, isSequence } from '@gpuwhisk/common/entities/exec-codec';
import type { StoredCode } from '@gpuwhisk/common/entities/exec-codec';
import type { LockParameters } from '@gpuwhisk/common/entities/parameter-encryption';
import { resolveKind } from '@gpuwhisk/common/runtimes';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import { KeyQueue } from '@gpuwhisk/common/store/key-queue';
import type { Random } from '@gpuwhisk/common/system/random';
import { BoundedCache } from '../entities/bounded-cache.js';
import { readStoredEntity } from '../entities/stored-entity.js';
import { makeAction, updateAction } from './action-put.js';
import type { MergeContext, ActionPut } from './action-put.js';

/** OpenWhisk's entity cache forgets after five minutes; the bound on entries is ours. */
const cacheBounds = { maxAgeMs: 5 * 60_000, maxEntries: 10_000 };

/** An action of the store, its code where it lies. Throws ApiError (404, 409, 500). */
export function readStoredAction(store: ArtifactStore, namespace: string, name: string): Promise<WhiskAction> {
  return readStoredEntity(store, `${namespace}/${name}`, readAction);
}

/** The actions that were invoked or written lately, without their code. */
export class ActionCache {
  private readonly cache: BoundedCache<WhiskAction>;

  constructor(
    private readonly store: ArtifactStore,
    clock: Clock,
    /** Told of the id of what was changed here. */
    private readonly onChange: (id: string) => void = () => undefined,
  ) {
    this.cache = new BoundedCache(clock, cacheBounds);
  }

  /** The action without its code, if it is remembered. `namespace` is `ns` or `ns/pkg`. */
  cached(namespace: string, name: string): WhiskAction | undefined {
    return this.cache.get(`${namespace}/${name}`);
  }

  /** The action without its code. Throws ApiError (404, 409, 500). */
  resolve(namespace: string, name: string): Promise<WhiskAction> {
    return this.cache.resolve(`${namespace}/${name}`, async () =>
      withoutCode(await readStoredAction(this.store, namespace, name)),
    );
  }

  /** Remembers an action that was just written. */
  written(action: WhiskAction): void {
    const id = actionId(action);
    this.cache.set(id, withoutCode(action));
    this.onChange(id);
  }

  /** Forgets an action that was or may have been changed. */
  drop(namespace: string, name: string): void {
    const id = `${namespace}/${name}`;
    this.cache.drop(id);
    this.onChange(id);
  }

  /** Forgets the action of an id that was changed elsewhere. */
  changedElsewhere(id: string): void {
    this.cache.drop(id);
  }
}

/** Reads of an action whose code is replaced meanwhile, at most. */
const maxReads = 3;

/** Reads actions with their code, writes and deletes them. */
export class ActionWriter {
  /**
   * One write of an action at a time: two at once could each remove the other's new code, as the store's revisions
   * guard the document only.
   */
  private readonly writes = new KeyQueue();

  constructor(
    private readonly store: ArtifactStore,
    private readonly cache: ActionCache,
    private readonly random: Random,
    private readonly lock: LockParameters,
  ) {}

  /** The action as stored, its code where it lies. Throws ApiError (404, 409, 500). */
  read(namespace: string, name: string): Promise<WhiskAction> {
    return readStoredAction(this.store, namespace, name);
  }

  /** The action with its code. Throws ApiError (404, 409, 500). */
  async readWithCode(namespace: string, name: string): Promise<WhiskAction> {
    for (let reads = 1; ; reads++) {
      const action = await this.read(namespace, name);
      try {
        return await withCode(this.store, action);
      } catch (error) {
        // The action was overwritten between its document and its code.
        if (!(error instanceof NoDocumentError) || reads >= maxReads) throw error;
      }
    }
  }

  /** Creates or, where `overwrite`, updates an action; resolves with it and its code. Throws ApiError. */
  put(
    namespace: string,
    name: string,
    put: ActionPut,
    overwrite: boolean,
    context: MergeContext,
  ): Promise<WhiskAction> {
    return this.writes.run(`${namespace}/${name}`, async () => {
      const stored = await this.readIfThere(namespace, name);
      if (stored !== undefined && !overwrite) throw alreadyExists();
      const action =
        stored === undefined ? makeAction(namespace, name, put, context) : updateAction(stored, put, context);
      const written = await this.write(action, put.exec, context.manifest);
      const complete = put.exec === undefined ? await withCode(this.store, written) : { ...written, exec: put.exec };
      // The caller gets back what it gave, not what is stored of it.
      return { ...complete, parameters: action.parameters };
    });
  }

  /** Deletes an action; resolves with it and its code (none if it was lost). Throws ApiError. */
  delete(namespace: string, name: string): Promise<WhiskAction> {
    return this.writes.run(`${namespace}/${name}`, async () => {
      const action = await this.read(namespace, name);
      const complete = await withCode(this.store, action).catch((error: unknown) => {
        if (error instanceof NoDocumentError) return action;
        throw error;
      });
      this.cache.drop(namespace, name);
      try {
        await this.store.delete('whisks', actionId(action), action.revision);
      } catch (error) {
        if (error instanceof DocumentConflictError || error instanceof NoDocumentError) throw concurrentModification();
        throw error;
      } finally {
        this.cache.drop(namespace, name);
      }
      return complete;
    });
  }

  private async readIfThere(namespace: string, name: string): Promise<WhiskAction | undefined> {
    try {
      return await this.read(namespace, name);
    } catch (error) {
      if (isApiError(error) && error.status === 404) return undefined;
      throw error;
    }
  }

  /** Stores an action; new code takes the place of the old in the same write. */
  private async write(action: WhiskAction, newExec: Exec | undefined, manifest: RuntimeManifest): Promise<WhiskAction> {
    const code = newExec === undefined ? undefined : this.codeToStore(newExec, manifest);
    const attachments = newExec === undefined ? undefined : code?.attachment === undefined ? [] : [code.attachment];
    const locked = { ...action, parameters: this.lock(action.parameters, actionId(action)) };
    const referring =
      code === undefined ? locked : { ...locked, exec: { ...action.exec, code: code.reference } as Exec };
    this.cache.drop(action.namespace, action.name);
    let revision: string;
    try {
      revision = await this.store.put('whisks', actionDocument(referring), attachments);
    } catch (error) {
      if (error instanceof DocumentConflictError) throw concurrentModification();
      throw error;
    }
    const written = { ...referring, revision };
    this.cache.written(written);
    return written;
  }

  /** How code is stored beside or in the document; undefined where it is a plain field. */
  private codeToStore(exec: Exec, manifest: RuntimeManifest): StoredCode | undefined {
    if (isSequence(exec) || typeof exec.code !== 'string') return undefined;
    const attached = exec.kind === 'blackbox' || resolveKind(manifest, exec.kind)?.attached !== undefined;
    return attached ? storeCode(exec.code, exec.binary, this.random) : undefined;
  }
}
