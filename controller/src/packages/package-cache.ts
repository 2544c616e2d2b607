import type { PackageBinding, WhiskPackage } from '@gpuwhisk/common/entities/package';
import { packageId, readPackage } from '@gpuwhisk/common/entities/package-codec';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { BoundedCache } from '../entities/bounded-cache.js';
import { readStoredEntity } from '../entities/stored-entity.js';

/** OpenWhisk's entity cache forgets after five minutes; the bound on entries is ours. */
const cacheBounds = { maxAgeMs: 5 * 60_000, maxEntries: 10_000 };

/** The packages and bindings that were used or written lately. */
export class PackageCache {
  private readonly cache: BoundedCache<WhiskPackage>;

  constructor(
    private readonly store: ArtifactStore,
    clock: Clock,
    /** Told of the id of what was changed here. */
    private readonly onChange: (id: string) => void = () => undefined,
  ) {
    this.cache = new BoundedCache(clock, cacheBounds);
  }

  /** The package if it is remembered. */
  cached(name: PackageBinding): WhiskPackage | undefined {
    return this.cache.get(packageId(name));
  }

  /** The package. Throws ApiError (404, 409, 500). */
  resolve(name: PackageBinding): Promise<WhiskPackage> {
    const id = packageId(name);
    return this.cache.resolve(id, () => readStoredEntity(this.store, id, readPackage));
  }

  /** Remembers a package that was just written. */
  written(stored: WhiskPackage): void {
    const id = packageId(stored);
    this.cache.set(id, stored);
    this.onChange(id);
  }

  /** Forgets a package that was or may have been changed. */
  drop(name: PackageBinding): void {
    const id = packageId(name);
    this.cache.drop(id);
    this.onChange(id);
  }

  /** Forgets the package of an id that was changed elsewhere. */
  changedElsewhere(id: string): void {
    this.cache.drop(id);
  }
}
