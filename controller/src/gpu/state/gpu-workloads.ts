import { concurrentModification, noSuchEntity, tooManyWorkloads } from '@gpuwhisk/common/errors';
import { workloadTable } from '@gpuwhisk/common/gpu';
import type { Workload } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState, StateSubscription } from '@gpuwhisk/common/state/cluster-state';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import type { Random } from '@gpuwhisk/common/system/random';

const prefix = 'workload/';
const pageSize = 200;
/** Most registered workloads of one namespace. */
const maxWorkloads = 100;

/** Registered long-running processes. They are kept in the store and published to the nodes in a table of the cluster. */
export class GpuWorkloads {
  private subscription: StateSubscription | undefined;
  /** The published rows, by id. */
  private readonly rows = new Map<string, Workload>();

  constructor(
    private readonly store: ArtifactStore,
    private readonly state: ClusterState,
    private readonly random: Random,
    private readonly logger: Logger,
  ) {}

  /** Publishes the stored registrations, and begins to delete those that a node's agent reports as ended. */
  async open(): Promise<void> {
    const known = await this.list();
    this.subscription = await this.state.watch(workloadTable, (id, row) => {
      const workload = row as unknown as Workload | undefined;
      if (workload === undefined) this.rows.delete(id);
      else this.rows.set(id, workload);
      if (workload?.ended !== true) return;
      this.remove(id).catch((error: unknown) =>
        // Another controller may have deleted the registration; otherwise the agent repeats its report.
        this.logger.info(
          { workload: id, error: String(error) },
          'the registration of an ended workload was not deleted',
        ),
      );
    });
    for (const workload of known) await this.show(workload);
  }

  /** The published workloads that have not ended. */
  get shown(): Workload[] {
    return [...this.rows.values()].filter(({ ended }) => ended !== true);
  }

  async close(): Promise<void> {
    await this.subscription?.close();
  }

  async list(): Promise<Workload[]> {
    const found: Workload[] = [];
    for (let after = prefix; ;) {
      const page = await this.store.list('gpu', { after, limit: pageSize });
      const documents = page.filter(({ _id: id }) => id.startsWith(prefix));
      found.push(...documents.map(workloadOf));
      const last = documents.at(-1);
      if (last === undefined || documents.length < pageSize) return found;
      after = last._id;
    }
  }

  /** Registers a workload. Throws ApiError (429) at the namespace's bound. */
  async add(workload: Omit<Workload, 'id'>): Promise<Workload> {
    const { namespace } = workload;
    const own = (await this.list()).filter((one) => one.namespace === namespace);
    if (own.length >= maxWorkloads) throw tooManyWorkloads(own.length, maxWorkloads);
    const added = { id: this.random.hex(8), ...workload };
    await this.store.put('gpu', { _id: prefix + added.id, ...added });
    await this.show(added);
    return added;
  }

  /** Changes a registration. Throws ApiError (404, 409). */
  async change(id: string, changes: Partial<Workload>): Promise<Workload> {
    const document = await this.document(id);
    const changed = { ...workloadOf(document), ...changes };
    await this.store.put('gpu', { ...document, ...changed }).catch(refuseConflict);
    await this.show(changed);
    return changed;
  }

  /** The registration of this id. Throws ApiError (404). */
  async get(id: string): Promise<Workload> {
    return workloadOf(await this.document(id));
  }

  /** Deletes a registration. Throws ApiError (404, 409). */
  async remove(id: string): Promise<void> {
    const document = await this.document(id);
    await this.store.delete('gpu', document._id, String(document._rev)).catch(refuseConflict);
    await this.state.deleteRow(workloadTable, id);
  }

  private async document(id: string): Promise<StoredDocument> {
    try {
      return await this.store.get('gpu', prefix + id);
    } catch (error) {
      if (error instanceof NoDocumentError) throw noSuchEntity();
      throw error;
    }
  }

  private async show(workload: Workload): Promise<void> {
    await this.state.setRow(workloadTable, workload.id, { ...workload } as unknown as JsonValue);
  }
}

function refuseConflict(error: unknown): never {
  if (error instanceof DocumentConflictError || error instanceof NoDocumentError) throw concurrentModification();
  throw error;
}

function workloadOf(document: StoredDocument): Workload {
  const fields = Object.entries(document).filter(([name]) => !name.startsWith('_'));
  return Object.fromEntries(fields) as unknown as Workload;
}
