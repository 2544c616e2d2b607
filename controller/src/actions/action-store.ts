// Actions in the store: a cache without code for invocations, and their writer.
import type { WhiskAction, Exec } from '@gpuwhisk/common/entities/action';
import { actionId, readAction, withoutCode, actionDocument, withCode } from '@gpuwhisk/common/entities/action';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import {
  alreadyExists,
  ambiguousVersion,
  concurrentModification,
  isApiError,
  noSuchVersion,
} from '@gpuwhisk/common/errors';
import { codeText, storeCode, storeLargeCode, isReference, isSequence } from '@gpuwhisk/common/entities/exec-codec';
import type { StoredCode } from '@gpuwhisk/common/entities/exec-codec';
import type { LockParameters } from '@gpuwhisk/common/entities/parameter-encryption';
import { resolveKind } from '@gpuwhisk/common/runtimes';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import { KeyQueue } from '@gpuwhisk/common/store/key-queue';
import type { Random } from '@gpuwhisk/common/system/random';
import { BoundedCache } from '../entities/bounded-cache.js';
import { readStoredEntity } from '../entities/stored-entity.js';
import { makeAction, restoreAction, updateAction } from './action-put.js';
import type { MergeContext, ActionPut } from './action-put.js';
import { ActionVersions } from './action-versions.js';

/** OpenWhisk's entity cache forgets after five minutes; the bound on entries is ours. */
const cacheBounds = { maxAgeMs: 5 * 60_000, maxEntries: 10_000 };

/** An action of the store with a reference to its code. Throws ApiError (404, 409, 500). */
export function readStoredAction(store: ArtifactStore, namespace: string, name: string): Promise<WhiskAction> {
  return readStoredEntity(store, `${namespace}/${name}`, readAction);
}

/** Cache of recently invoked or written actions, without their code. */
export class ActionCache {
  private readonly cache: BoundedCache<WhiskAction>;

  constructor(
    private readonly store: ArtifactStore,
    clock: Clock,
    /** Called with the id of each entity that this controller has changed. */
    private readonly onChange: (id: string) => void = () => undefined,
  ) {
    this.cache = new BoundedCache(clock, cacheBounds);
  }

  /** The action without its code, or undefined if the cache lacks it. `namespace` is `ns` or `ns/pkg`. */
  cached(namespace: string, name: string): WhiskAction | undefined {
    return this.cache.get(`${namespace}/${name}`);
  }

  /** The action without its code. Throws ApiError (404, 409, 500). */
  resolve(namespace: string, name: string): Promise<WhiskAction> {
    return this.cache.resolve(`${namespace}/${name}`, async () =>
      withoutCode(await readStoredAction(this.store, namespace, name)),
    );
  }

  /** Caches an action that was just written. */
  written(action: WhiskAction): void {
    const id = actionId(action);
    this.cache.set(id, withoutCode(action));
    this.onChange(id);
  }

  /** Removes from the cache an action that was or may have been changed. */
  drop(namespace: string, name: string): void {
    const id = `${namespace}/${name}`;
    this.cache.drop(id);
    this.onChange(id);
  }

  /** Removes from the cache the action that another controller has changed. */
  changedElsewhere(id: string): void {
    this.cache.drop(id);
  }
}

/** Most attempts to read an action whose code is replaced during the read. */
const maxReads = 3;

/** An earlier version: by its number and, where several have it, its time (epoch ms); neither: the one before the present one. */
export interface WantedVersion {
  version?: string | undefined;
  updated?: number | undefined;
}

/** Reads actions with their code, writes and deletes them. */
export class ActionWriter {
  /**
   * Serialises the writes of one action. Two at once could each remove the other's new code, as revisions guard documents
   * only.
   */
  private readonly writes = new KeyQueue();
  private readonly earlier: ActionVersions;

  constructor(
    private readonly store: ArtifactStore,
    private readonly cache: ActionCache,
    private readonly sources: { random: Random; clock: Clock },
    private readonly lock: LockParameters,
  ) {
    this.earlier = new ActionVersions(store);
  }

  /** The stored action with a reference to its code. Throws ApiError (404, 409, 500). */
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
        // The action was overwritten between the reads of its document and of its code.
        if (!(error instanceof NoDocumentError) || reads >= maxReads) throw error;
      }
    }
  }

  /** Creates an action, or updates it if `overwrite` is set. Resolves with the action and its code. Throws ApiError. */
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
      // A deletion that did not end may have left versions.
      await (stored === undefined ? this.earlier.forget(actionId(action)) : this.earlier.keep(stored));
      const written = await this.write(action, put.exec, context.manifest);
      const complete = put.exec === undefined ? await withCode(this.store, written) : { ...written, exec: put.exec };
      // The answer has the parameters as the caller gave them, not as they are stored.
      return { ...complete, parameters: action.parameters };
    });
  }

  /** The stored action, and the versions before it that are kept, the newest first; without code. Throws ApiError (404, 409, 500). */
  async versions(namespace: string, name: string): Promise<WhiskAction[]> {
    const action = await this.read(namespace, name);
    return [action, ...(await this.earlier.before(action))].map(withoutCode);
  }

  /** An earlier version with its code; absent `version`: the one before the present one. Throws ApiError (404, 409, 500). */
  async readVersion(namespace: string, name: string, wanted: WantedVersion): Promise<WhiskAction> {
    const action = await this.read(namespace, name);
    const isPresent = wanted.version === action.version && (wanted.updated ?? action.updated) === action.updated;
    return isPresent ? this.readWithCode(namespace, name) : this.earlierVersion(action, wanted);
  }

  /**
   * Makes an earlier version the present one, under a new number; absent `version`: the one before the present one. `check`
   * is called with its exec before it is written. Resolves with the action and its code. Throws ApiError (400, 404, 409, 500).
   */
  restore(
    place: { namespace: string; name: string; wanted: WantedVersion },
    context: MergeContext,
    check: (exec: Exec) => Promise<void>,
  ): Promise<WhiskAction> {
    const { namespace, name, wanted } = place;
    return this.writes.run(`${namespace}/${name}`, async () => {
      const stored = await this.read(namespace, name);
      const action = restoreAction(stored, await this.earlierVersion(stored, wanted), context);
      await check(action.exec);
      await this.earlier.keep(stored);
      const written = await this.write(action, action.exec, context.manifest);
      return { ...written, exec: action.exec };
    });
  }

  private async earlierVersion(action: WhiskAction, { version, updated }: WantedVersion): Promise<WhiskAction> {
    const all = await this.earlier.before(action);
    const matching = all.filter(
      (one) => (version ?? one.version) === one.version && (updated ?? one.updated) === one.updated,
    );
    const [found] = matching;
    if (found === undefined)
      throw noSuchVersion(
        all.map((one) => one.version),
        version,
      );
    if (version !== undefined && matching.length > 1) {
      throw ambiguousVersion(
        matching.map((one) => one.updated),
        version,
      );
    }
    try {
      return await this.earlier.withCode(found);
    } catch (error) {
      if (error instanceof NoDocumentError) throw noSuchVersion([], version);
      throw error;
    }
  }

  /** Deletes an action with its earlier versions; resolves with the action and its code (no code if the attachment was lost). Throws ApiError. */
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
      await this.earlier.forget(actionId(action));
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

  /** Stores an action; new code replaces the old code in the same write. */
  private async write(given: WhiskAction, newExec: Exec | undefined, manifest: RuntimeManifest): Promise<WhiskAction> {
    const code = newExec === undefined ? undefined : await this.codeToStore(newExec, manifest);
    const action = code === undefined ? withCodeAsText(given) : given;
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

  /** How the store keeps the code, beside or in the document; undefined for code that is a plain field. */
  private async codeToStore(exec: Exec, manifest: RuntimeManifest): Promise<StoredCode | undefined> {
    if (isSequence(exec) || exec.code === undefined || isReference(exec.code)) return undefined;
    const attached = exec.kind === 'blackbox' || resolveKind(manifest, exec.kind)?.attached !== undefined;
    if (!attached) return undefined;
    const { code, binary } = exec;
    const { random, clock } = this.sources;
    return typeof code === 'string'
      ? storeCode(code, binary, random)
      : storeLargeCode({ bytes: code, binary }, random, clock);
  }
}

/** The action with large code as text, for kinds that have code as a plain field of the document. */
function withCodeAsText(action: WhiskAction): WhiskAction {
  const { exec } = action;
  if (isSequence(exec) || !(exec.code instanceof Uint8Array)) return action;
  return { ...action, exec: { ...exec, code: codeText(exec.code, exec.binary) } };
}
