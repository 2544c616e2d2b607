import { concurrentModification, noSuchEntity, tooManyWorkloads } from '@gpuwhisk/common/errors';
import { workloadTable } from '@gpuwhisk/common/gpu';
import type { Workload } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState, StateSubscription } from '@gpuwhisk/common/state/cluster-state';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { workloadTokenHash } from '@gpuwhisk/common/workload-guard';
import { workloadReportTable } from '@gpuwhisk/common/workload-reports';
import type { WorkloadReports } from '@gpuwhisk/common/workload-reports';
import { standingOf } from '@gpuwhisk/gpu/view/workload-standing';
import { gpuDocument, gpuDocuments } from './gpu-documents.js';
import type { GpuTable } from './gpu-table.js';
import { WorkloadEstimates } from './workload-estimates.js';
import { aloneRateOf, FunctionUse, revisedBaseline, sinceOf, withReport } from './workload-reports.js';

const prefix = 'workload/';
/** Most registered workloads of one namespace. */
const maxWorkloads = 100;
const tokenBytes = 16;

/** Dependencies of GpuWorkloads. */
export interface GpuWorkloadsParts {
  store: ArtifactStore;
  state: ClusterState;
  table: Pick<GpuTable, 'nodes' | 'onRow' | 'onGone'>;
  clock: Clock;
  random: Random;
  logger: Logger;
}

/**
 * Registered long-running processes. They are kept in the store and published to the nodes in a table of the cluster.
 * Their reports, which come every second, are in another table: neither the store nor the agents read them.
 */
export class GpuWorkloads {
  private readonly subscriptions: StateSubscription[] = [];
  /** The published rows, by id. */
  private readonly rows = new Map<string, Workload>();
  private readonly reports = new Map<string, WorkloadReports>();
  private readonly use: FunctionUse;
  private readonly estimates: WorkloadEstimates;
  private onSuffering: (() => void) | undefined;

  constructor(private readonly parts: GpuWorkloadsParts) {
    this.use = new FunctionUse(parts.table, parts.clock);
    this.estimates = new WorkloadEstimates(parts.table);
  }

  /** Publishes the stored registrations, and begins to delete those that a node's agent reports as ended. */
  async open(): Promise<void> {
    const { state } = this.parts;
    const known = (await gpuDocuments(this.parts.store, prefix)).map(workloadOf);
    const watched = await state.watch(workloadTable, (id, row) =>
      this.take(id, row as unknown as Workload | undefined),
    );
    const reports = await state.watch(workloadReportTable, (id, row) => {
      if (row === undefined) this.reports.delete(id);
      else this.takeReport(id, row as unknown as WorkloadReports);
    });
    this.subscriptions.push(watched, reports);
    for (const [id, row] of await state.rows(workloadReportTable)) {
      if (!known.some((workload) => workload.id === id)) await state.deleteRow(workloadReportTable, id);
      else if (!this.reports.has(id)) this.reports.set(id, row as unknown as WorkloadReports);
    }
    for (const workload of known) await this.show(workload);
  }

  /** Calls `listener` when a workload has reported, to any controller, that it is slower than it tolerates. */
  whenSuffering(listener: () => void): void {
    this.onSuffering = listener;
  }

  private takeReport(id: string, reports: WorkloadReports): void {
    this.reports.set(id, reports);
    const workload = this.rows.get(id);
    const { rate, reportedAt } = reports;
    const standing = workload && standingOf({ ...workload, rate, reportedAt }, this.parts.clock.now());
    if (standing?.state === 'beyond-bound' && workload && this.isProtected(workload)) this.onSuffering?.();
  }

  private take(id: string, workload: Workload | undefined): void {
    if (workload === undefined) this.rows.delete(id);
    else this.rows.set(id, workload);
    if (workload?.ended !== true) return;
    this.remove(id).catch((error: unknown) =>
      // Another controller may have deleted the registration; otherwise the agent repeats its report.
      this.parts.logger.info(
        { workload: id, error: String(error) },
        'the registration of an ended workload was not deleted',
      ),
    );
  }

  /**
   * The published workloads that are protected: those of operators, and those with a process on their device that the agent
   * of the node attests.
   */
  get shown(): Workload[] {
    const attested = this.attested();
    return [...this.rows.values()]
      .filter(({ id, guard, ended }) => ended !== true && (guard?.byOperator === true || attested.has(id)))
      .map((one) => this.withRates(one));
  }

  /** The ids of the workloads with an attested process. */
  attested(): Set<string> {
    const attested = new Set<string>();
    for (const { status } of this.parts.table.nodes()) {
      for (const { processes } of status) {
        for (const { workload } of processes) if (workload !== undefined) attested.add(workload);
      }
    }
    return attested;
  }

  private isProtected({ id, guard, invoker }: Workload): boolean {
    if (guard?.byOperator === true) return true;
    const node = this.parts.table.nodes().find((one) => one.invoker === invoker);
    return node?.status.some(({ processes }) => processes.some(({ workload }) => workload === id)) === true;
  }

  async close(): Promise<void> {
    for (const subscription of this.subscriptions) await subscription.close();
  }

  /** The registered workloads with their reported rates. */
  async list(): Promise<Workload[]> {
    return (await gpuDocuments(this.parts.store, prefix)).map((document) => this.withRates(workloadOf(document)));
  }

  /**
   * Registers a workload. A workload that is yet to be started gets a token, by which the agent of its node knows its
   * processes. Throws ApiError (429) at the namespace's bound.
   */
  async add(workload: Omit<Workload, 'id'>): Promise<{ added: Workload; token?: string }> {
    const { namespace } = workload;
    const own = (await gpuDocuments(this.parts.store, prefix)).filter((one) => one.namespace === namespace);
    if (own.length >= maxWorkloads) throw tooManyWorkloads(own.length, maxWorkloads);
    const token = workload.origin === 'started' ? this.parts.random.hex(tokenBytes) : undefined;
    const guard = { ...workload.guard, ...(token !== undefined && { tokenHash: workloadTokenHash(token) }) };
    const added: Workload = { id: this.parts.random.hex(8), ...workload, guard };
    await this.parts.store.put('gpu', documentOf(prefix + added.id, added));
    await this.show(added);
    return { added, ...(token !== undefined && { token }) };
  }

  /**
   * Changes a registration. A declared baseline replaces a measured one, and what was measured before it counts no more.
   * Throws ApiError (404, 409).
   */
  async change(id: string, changes: Partial<Workload>): Promise<Workload> {
    const document = await this.document(id);
    const before = workloadOf(document);
    if (changes.baselineRate === undefined) return this.write(document, { ...before, ...changes });
    const declared: Workload = { ...before, ...changes, baselineFrom: 'declared' };
    delete declared.declaredBaselineRate;
    const changed = await this.write(document, declared);
    const reports = this.reports.get(id);
    if (reports !== undefined) await this.setReports(id, { ...reports, recent: [], alone: [] });
    return changed;
  }

  /**
   * Takes a report of a workload's rate, and sets the workload's baseline if its reports call for that. `isStalled`: the
   * rate is only what a step can still reach that does not end. Throws ApiError (404).
   */
  async report(id: string, rate: number, isStalled = false): Promise<Workload> {
    const document = await this.document(id);
    const workload = workloadOf(document);
    const at = this.parts.clock.now();
    const before = this.reports.get(id);
    const isAlone = before !== undefined && this.use.isUnusedSince(workload, sinceOf(before, { rate, at }));
    const reports = withReport(before, { rate, at, isAlone, isStalled });
    const revision = revisedBaseline(workload, reports);
    if (revision === undefined) {
      await this.setReports(id, reports);
      return this.withRates(workload);
    }
    const { isRaise, ...baseline } = revision;
    // Rates alone of before a raise would lower the baseline again.
    await this.setReports(id, { ...reports, revisedAt: at, ...(isRaise && { recent: [], alone: [] }) });
    return this.write(document, { ...workload, ...baseline }).catch((error: unknown) => {
      // Another request changed the registration meanwhile. A later report revises the baseline then.
      this.parts.logger.info({ workload: id, error: String(error) }, 'a baseline was not kept');
      return this.withRates(workload);
    });
  }

  /** The registration of this id. Throws ApiError (404). */
  async get(id: string): Promise<Workload> {
    return this.withRates(workloadOf(await this.document(id)));
  }

  /** Deletes a registration. Throws ApiError (404, 409). */
  async remove(id: string): Promise<void> {
    const { store, state } = this.parts;
    const document = await this.document(id);
    await store.delete('gpu', document._id, String(document._rev)).catch(refuseConflict);
    await state.deleteRow(workloadTable, id);
    await state.deleteRow(workloadReportTable, id);
  }

  private async document(id: string): Promise<StoredDocument> {
    const document = await gpuDocument(this.parts.store, prefix + id);
    if (document === undefined) throw noSuchEntity();
    return document;
  }

  private async write(document: StoredDocument, workload: Workload): Promise<Workload> {
    const { _id, _rev } = document;
    await this.parts.store.put('gpu', documentOf(_id, workload, String(_rev))).catch(refuseConflict);
    await this.show(workload);
    return this.withRates(workload);
  }

  private async show(workload: Workload): Promise<void> {
    await this.parts.state.setRow(workloadTable, workload.id, { ...workload } as unknown as JsonValue);
  }

  private async setReports(id: string, reports: WorkloadReports): Promise<void> {
    this.reports.set(id, reports);
    await this.parts.state.setRow(workloadReportTable, id, { ...reports } as unknown as JsonValue);
  }

  /** The workload with its reported rates or, if these give no degradation now, with an estimated degradation. */
  withRates(workload: Workload): Workload {
    const reports = this.reports.get(workload.id);
    const aloneRate = reports && aloneRateOf(reports);
    const measuredFeatures = this.estimates.featuresOf(workload);
    const rated: Workload = {
      ...workload,
      ...(measuredFeatures && { measuredFeatures }),
      ...(reports && { rate: reports.rate, reportedAt: reports.reportedAt }),
      ...(aloneRate !== undefined && { aloneRate }),
    };
    const isMeasured = standingOf(rated, this.parts.clock.now())?.degradation !== undefined;
    return isMeasured ? rated : { ...rated, ...this.estimates.estimateOf(workload) };
  }
}

function refuseConflict(error: unknown): never {
  if (error instanceof DocumentConflictError || error instanceof NoDocumentError) throw concurrentModification();
  throw error;
}

function documentOf(_id: string, workload: Workload, _rev?: string): StoredDocument {
  return { _id, ...(_rev !== undefined && { _rev }), ...workload } as unknown as StoredDocument;
}

/** The registration in a document. Its `rate`, which earlier versions kept there, is of unknown age and left out. */
function workloadOf(document: StoredDocument): Workload {
  const fields = Object.entries(document).filter(([name]) => !name.startsWith('_') && name !== 'rate');
  return Object.fromEntries(fields) as unknown as Workload;
}
