import { concurrentModification } from '@gpuwhisk/common/errors';
import { gpuWishTable } from '@gpuwhisk/common/gpu';
import type { GpuWish } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';

const prefix = 'wish/';
/** More devices than any cluster has. */
const maxWishes = 10_000;

/** What operators want of devices: kept in the store, and shown to the nodes in a table of the cluster. */
export class GpuWishes {
  constructor(
    private readonly store: ArtifactStore,
    private readonly state: ClusterState,
    private readonly clock: Clock,
  ) {}

  /** Shows the nodes what operators wanted in earlier lives. */
  async open(): Promise<void> {
    const documents = await this.store.list('gpu', { after: prefix, limit: maxWishes });
    for (const { _id: id, wish, at } of documents) {
      if (id.startsWith(prefix)) await this.show(id.slice(prefix.length), { wish, at } as unknown as GpuWish);
    }
  }

  /** Throws ApiError (409) where another operator is faster. */
  async set(device: string, wanted: GpuWish['wish']): Promise<GpuWish> {
    const wish: GpuWish = { wish: wanted, at: this.clock.now() };
    try {
      await this.store.put('gpu', { ...(await this.stored(device)), _id: prefix + device, ...wish });
    } catch (error) {
      if (error instanceof DocumentConflictError) throw concurrentModification();
      throw error;
    }
    await this.show(device, wish);
    return wish;
  }

  private async stored(device: string): Promise<object> {
    try {
      return await this.store.get('gpu', prefix + device);
    } catch (error) {
      if (error instanceof NoDocumentError) return {};
      throw error;
    }
  }

  private show(device: string, wish: GpuWish): Promise<void> {
    return this.state.setRow(gpuWishTable, device, { ...wish } as unknown as JsonValue);
  }
}
