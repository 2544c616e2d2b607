import type { PackageBinding, WhiskPackage } from '@gpuwhisk/common/entities/package';
import { packageId, readPackage } from '@gpuwhisk/common/entities/package-codec';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { BoundedCache } from '../bounded-cache.js';
import { readStoredEntity } from '../stored-entity.js';

/** OpenWhisk's entity cache forgets after five minutes; the bound on entries is ours. */
const cacheBounds = { maxAgeMs: 5 * 60_000, maxEntries: 10_000 };

/** The packages and bindings that were used or written lately. */
export class PackageCache {
  private readonly cache: BoundedCache<WhiskPackage>;

  constructor(
    private readonly store: ArtifactStore,
    clock: Clock,
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
    this.cache.set(packageId(stored), stored);
  }

  /** Forgets a package that was or may have been changed. */
  drop(name: PackageBinding): void {
    this.cache.drop(packageId(name));
  }
}
