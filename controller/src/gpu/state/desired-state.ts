// The desired state of nodes: instances, shares and slices by the leader, cordons of devices by operators.
import { gpuDesiredTable, cordonTable } from '@gpuwhisk/common/gpu';
import type { DesiredShare, GpuDesired as DesiredRow, NodeStatus, CordonRequest } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import { concurrentModification } from '@gpuwhisk/common/errors';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { DocumentConflictError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { LeaseKeeper } from '../../cluster/lease.js';
import { gpuDocument, gpuDocuments } from './gpu-documents.js';

/** Dependencies of DesiredState. */
interface DesiredStateDependencies {
  state: ClusterState;
  lease: Pick<LeaseKeeper, 'epoch'>;
  logger: Logger;
}

type Wanted = Omit<DesiredRow, 'epoch'>;

/**
 * The desired state of each node: instances to retire, their shares, and the slices of devices. Agents reconcile with the
 * whole state at each look, so that a lost message or a restart of either side has no effect. Only the leader writes the
 * state.
 */
export class DesiredState {
  private rows = new Map<string, DesiredRow>();
  /** The epoch of the term that has begun; before a later one another controller may have written rows. */
  private term: { epoch: number; begun: Promise<void> } | undefined;
  /** The last write of each node's row; writes of one row are serial. */
  private readonly writing = new Map<string, Promise<void>>();

  constructor(private readonly dependencies: DesiredStateDependencies) {}

  /**
   * Retires an instance as soon as it is idle. A run that takes longer than `graceMs` from now is stopped; without `graceMs`
   * it is not. Rejects with an Error if another controller is the leader.
   */
  retire(invoker: string, container: string, graceMs?: number): Promise<void> {
    return this.change(invoker, ({ retire }) => ({ retire: { ...retire, [container]: graceMs ?? null } }));
  }

  /** Whether an instance of a node is being retired. */
  isRetiring(invoker: string, container: string): boolean {
    return this.rows.get(invoker)?.retire[container] !== undefined;
  }

  /**
   * Changes the request and limit of an instance, up to its class. Rejects with an Error if another controller is the
   * leader.
   */
  reshare(invoker: string, container: string, share: DesiredShare): Promise<void> {
    return this.change(invoker, ({ shares }) => ({ shares: { ...shares, [container]: share } }));
  }

  /** Sets the geometry of a device, as MIG profiles; empty: the whole device. Rejects as `retire` does. */
  cut(invoker: string, device: string, profiles: readonly string[]): Promise<void> {
    return this.change(invoker, ({ geometry }) => ({ geometry: { ...geometry, [device]: [...profiles] } }));
  }

  /** The devices that are to be in time slices. */
  get timeSlices(): ReadonlySet<string> {
    return new Set([...this.rows.values()].flatMap(({ timeSlices = [] }) => timeSlices));
  }

  /** Has a device that is shared by MPS go over to time slices, or back. Rejects as `retire` does. */
  setTimeSlices(invoker: string, device: string, are: boolean): Promise<void> {
    return this.change(invoker, ({ timeSlices = [] }) => {
      const others = timeSlices.filter((one) => one !== device);
      return { timeSlices: are ? [...others, device] : others };
    });
  }

  private async change(invoker: string, changed: (row: Wanted) => Partial<Wanted>): Promise<void> {
    await this.takeOver();
    const row = this.rowOf(invoker);
    await this.set(invoker, { ...row, ...changed(row) });
  }

  /**
   * Begins a new term of this controller, if there is one. Removes requests about instances that no longer exist on the
   * node, and shares that hold while an instance is busy once it is not.
   */
  observe({ invoker, residents }: Pick<NodeStatus, 'invoker' | 'residents'>): void {
    const { epoch } = this.dependencies.lease;
    if (epoch === undefined) return;
    if (epoch !== this.term?.epoch) return this.report(this.takeOver(), invoker);
    const row = this.rows.get(invoker);
    if (row === undefined) return;
    const there = new Set(residents.map(({ container }) => container));
    const ofThere = <Value>(requests: Record<string, Value>): Record<string, Value> =>
      Object.fromEntries(Object.entries(requests).filter(([container]) => there.has(container)));
    const retire = ofThere(row.retire);
    const busy = new Set(
      residents.filter(({ activations }) => activations.length > 0).map(({ container }) => container),
    );
    const shares = Object.fromEntries(
      Object.entries(ofThere(row.shares)).filter(([id, { whileBusy = false }]) => !whileBusy || busy.has(id)),
    );
    const sizeOf = (...requests: object[]): number => requests.reduce((sum, one) => sum + Object.keys(one).length, 0);
    const isSame = sizeOf(retire, shares) === sizeOf(row.retire, row.shares);
    if (!isSame) this.report(this.set(invoker, { ...row, retire, shares }), invoker);
  }

  private report(written: Promise<void>, invoker: string): void {
    written.catch((error: unknown) =>
      this.dependencies.logger.warn(
        { invoker, error: String(error) },
        'the desired state of a node could not be written',
      ),
    );
  }

  /** Once a term, reads the rows of the earlier leader and writes them again with the new epoch. */
  private takeOver(): Promise<void> {
    const { epoch } = this.dependencies.lease;
    if (epoch === undefined) return Promise.resolve();
    let { term } = this;
    if (term?.epoch !== epoch) {
      const begun = this.beginTerm();
      term = { epoch, begun };
      this.term = term;
      begun.catch(() => {
        // The next command or row repeats it.
        if (this.term?.begun === begun) this.term = undefined;
      });
    }
    return term.begun;
  }

  private async beginTerm(): Promise<void> {
    const rows = await this.dependencies.state.rows(gpuDesiredTable);
    this.rows = new Map([...rows].map(([invoker, row]) => [invoker, row as unknown as DesiredRow]));
    // An agent that starts ignores rows with an older epoch than the leader's.
    await Promise.all(Array.from(this.rows, ([invoker, row]) => this.set(invoker, row)));
  }

  private rowOf(invoker: string): Wanted {
    return this.rows.get(invoker) ?? { retire: {}, shares: {}, geometry: {} };
  }

  private set(invoker: string, wanted: Wanted): Promise<void> {
    const { state, lease } = this.dependencies;
    const { epoch } = lease;
    if (epoch === undefined) return Promise.reject(new Error('another controller decides'));
    const row: DesiredRow = { ...wanted, epoch };
    this.rows.set(invoker, row);
    const before = this.writing.get(invoker) ?? Promise.resolve();
    const written = before
      .catch(() => undefined)
      .then(() => state.setRow(gpuDesiredTable, invoker, row as unknown as JsonValue));
    this.writing.set(invoker, written);
    return written;
  }
}

/** Prefix of the documents' ids. */
const documentPrefix = 'wish/';

/**
 * Operators' requests to cordon, drain or uncordon devices. They are kept in the store and published to the nodes in a table
 * of the cluster.
 */
export class DeviceCordons {
  constructor(
    private readonly store: ArtifactStore,
    private readonly state: ClusterState,
    private readonly clock: Clock,
  ) {}

  /** Publishes the stored requests to the nodes. */
  async open(): Promise<void> {
    for (const { _id: id, wish, at } of await gpuDocuments(this.store, documentPrefix)) {
      await this.show(id.slice(documentPrefix.length), { wish, at } as unknown as CordonRequest);
    }
  }

  /** Stores and publishes a request. Throws ApiError (409) if another operator was faster. */
  async set(device: string, wanted: CordonRequest['wish']): Promise<CordonRequest> {
    const wish: CordonRequest = { wish: wanted, at: this.clock.now() };
    const _id = documentPrefix + device;
    try {
      await this.store.put('gpu', { ...(await gpuDocument(this.store, _id)), _id, ...wish });
    } catch (error) {
      if (error instanceof DocumentConflictError) throw concurrentModification();
      throw error;
    }
    await this.show(device, wish);
    return wish;
  }

  private show(device: string, wish: CordonRequest): Promise<void> {
    return this.state.setRow(cordonTable, device, { ...wish } as unknown as JsonValue);
  }
}
