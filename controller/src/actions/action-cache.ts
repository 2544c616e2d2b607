import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { actionId, readAction, withoutCode } from '@gpuwhisk/common/entities/action-codec';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { BoundedCache } from '../entities/bounded-cache.js';
import { readStoredEntity } from '../entities/stored-entity.js';

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
