import type { LockParameters, UnlockArguments } from '@gpuwhisk/common/entities/parameter-encryption';
import { activationDocumentId, readActivation } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import {
  isApiError,
  noSuchTrainingJob,
  tooManyTrainingJobs,
  trainingJobsElsewhere,
  trainingJobStopped,
} from '@gpuwhisk/common/errors';
import type { NodeStatus } from '@gpuwhisk/common/gpu';
import { newActivationId, newTransactionId } from '@gpuwhisk/common/ids';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore, StoredDocument } from '@gpuwhisk/common/store/artifact-store';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { endedTrainingTable, trainingLogTable, trainingStatusTable } from '@gpuwhisk/common/training';
import type { TrainingLog, TrainingStatus } from '@gpuwhisk/common/training';
import type { ActionResolver } from '../../actions/action-resolver.js';
import type { Identities } from '../../authentication/authentication.js';
import { parseActionName } from '../../entities/action-name.js';
import type { InvokeService } from '../../invoke/invoke-service.js';
import type { GpuScheduler } from '../scheduler/gpu-scheduler.js';
import type { DesiredState } from '../state/desired-state.js';
import { gpuDocument, gpuDocuments } from '../state/gpu-documents.js';
import type { GpuTable } from '../state/gpu-table.js';
import { documentOf, jobDocumentId, jobIn, jobPrefix, keptOf, namespacePrefix, payloadOf } from './job-documents.js';
import type { Kept } from './job-documents.js';
import {
  afterRun,
  endOf,
  isOver,
  lastAttempt,
  lostRun,
  newTrainingJob,
  runOf,
  whenRunning,
  whenStopped,
  withAttempt,
} from './training-job.js';
import type { RunEnd, TrainingAttempt, TrainingJob, TrainingOrder } from './training-job.js';

/** Dependencies of TrainingJobs. */
export interface TrainingJobsParts {
  store: ArtifactStore;
  state: Pick<ClusterState, 'rows' | 'setRow' | 'deleteRow'>;
  gpuTable: Pick<GpuTable, 'nodes'>;
  gpuScheduler: Pick<GpuScheduler, 'epoch' | 'isQueued' | 'cancel'>;
  gpuDesired: Pick<DesiredState, 'retire' | 'isRetiring'>;
  invoker: InvokeService;
  identities: Pick<Identities, 'ofNamespace'>;
  resolver: Pick<ActionResolver, 'resolve'>;
  lock: LockParameters;
  unlock: UnlockArguments;
  clock: Clock;
  random: Random;
  logger: Logger;
}

/** Lines of a run's log, from a place on. */
export interface TrainingLogPart extends TrainingLog {
  /** Where the next part begins; absent at the end of the log of the last run. */
  next?: { attempt: number; from: number };
}

/** Most jobs of a namespace that have not ended, and most ended ones that are kept. */
const [maxActive, maxEnded] = [50, 100];
/** Jobs that a namespace begins until its oldest ended ones are removed again: all of its jobs are read for that. */
const removedEach = 20;
/** Interval of looks at the jobs, ms. */
const lookMs = 1000;
/** Interval at which the leader reads all jobs, ms: a controller that was the leader may have accepted one since. */
const readMs = 60_000;
/** How long a run may be seen nowhere until it counts as lost, ms: longer than an invoker takes to start again. */
const lostMs = 120_000;
/** Most lines of a log in one answer. */
const maxLines = 1000;

/**
 * The training jobs of all namespaces. Each is a document; the leader begins their runs as activations, and follows them by
 * the queue, the rows of the agents and the records. It decides about one job at a time.
 *
 * A leader begins its term by writing its epoch into the document of each job that goes on. It writes only while its lease
 * certainly lasts, and to revisions that it has read: a write of an earlier leader that arrives later is refused.
 */
export class TrainingJobs {
  /** The jobs that have not ended; undefined while another controller is the leader. */
  private active: Map<string, Kept> | undefined;
  /** The epoch of the term in which `active` was read, and when that was, monotonic ms. */
  private epoch: number | undefined;
  private readAtMs = 0;
  /** Monotonic ms since which a job's run is seen nowhere. */
  private readonly missing = new Map<string, number>();
  private last: Promise<unknown> = Promise.resolve();
  private timer: Timer | undefined;
  private closed = false;

  /** By namespace, jobs begun since its oldest ended ones were removed. */
  private readonly begun = new Map<string, number>();

  constructor(private readonly parts: TrainingJobsParts) {}

  /** Begins to carry the jobs on while this controller is the leader. */
  open(): void {
    this.timer = this.parts.clock.setBackgroundTimer(lookMs, () => {
      void this.inTurn(() => this.look())
        .catch((error: unknown) => {
          this.parts.logger.error({ error: String(error) }, 'the training jobs could not be looked at');
        })
        .finally(() => {
          if (!this.closed) this.open();
        });
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    this.timer?.cancel();
    await this.last.catch(() => undefined);
  }

  /** The jobs of a namespace, or of all, that are kept, the newest first. */
  async list(namespace?: string): Promise<TrainingJob[]> {
    const prefix = namespace === undefined ? jobPrefix : namespacePrefix(namespace);
    const jobs = (await gpuDocuments(this.parts.store, prefix)).map(jobIn);
    return jobs.sort((one, other) => other.createdAt - one.createdAt);
  }

  /** A job of a namespace, or of any. Throws ApiError (404). */
  async get(id: string, namespace?: string): Promise<TrainingJob> {
    if (namespace === undefined) {
      const found = (await this.list()).find((job) => job.id === id);
      if (found === undefined) throw noSuchTrainingJob(id);
      return found;
    }
    const document = await gpuDocument(this.parts.store, jobDocumentId({ namespace, id }));
    if (document === undefined) throw noSuchTrainingJob(id);
    return jobIn(document);
  }

  /** The reports of runs under way, by job. */
  async statuses(): Promise<Map<string, TrainingStatus>> {
    return (await this.parts.state.rows(trainingStatusTable)) as unknown as Map<string, TrainingStatus>;
  }

  /** Accepts a job and begins its first run. Throws ApiError (400, 403, 404, 429, 503); there is no job then. */
  start(order: TrainingOrder): Promise<TrainingJob> {
    return this.inTurn(async () => {
      const active = await this.leading();
      const own = [...active.values()].filter(({ job }) => job.namespace === order.namespace);
      if (own.length >= maxActive) throw tooManyTrainingJobs(own.length, maxActive);
      await this.removeOldest(order.namespace);
      const { clock, random } = this.parts;
      const accepted = newTrainingJob(random.hex(8), order, clock.now());
      const job = { ...accepted, parameters: this.parts.lock(order.parameters, jobDocumentId(accepted)) };
      const kept = await this.put({ job, revision: '' });
      try {
        return (await this.begin(kept)).job;
      } catch (error) {
        try {
          await this.forget(this.active?.get(job.id) ?? kept);
        } catch (conflict) {
          // The next leader has taken the job over.
          if (conflict instanceof DocumentConflictError) return this.get(job.id, job.namespace);
          throw conflict;
        }
        throw error;
      }
    });
  }

  /** Stops a job within a grace. Throws ApiError (404, 503). */
  stop(id: string, namespace: string, graceMs: number): Promise<TrainingJob> {
    return this.inTurn(async () => {
      const kept = (await this.leading()).get(id);
      if (kept === undefined) return this.get(id, namespace);
      const stopped = await this.put({ ...kept, job: whenStopped(kept.job, graceMs, this.parts.clock.now()) });
      if (!isOver(stopped.job)) await this.endRun(stopped.job);
      return stopped.job;
    });
  }

  /** A part of the log of a run, its lines from `from` on. Throws ApiError (404). */
  async log(job: TrainingJob, number: number, from: number): Promise<TrainingLogPart> {
    const attempt = job.attempts.find((one) => one.number === number);
    const later = job.attempts.find((one) => one.number > number);
    const record = attempt && (await this.recordOf(job, attempt));
    if (record !== undefined || attempt === undefined || attempt.endedAt !== undefined) {
      const all = record?.logs ?? [];
      const lines = all.slice(from, from + maxLines);
      const end = from + lines.length;
      const next = end < all.length ? { attempt: number, from: end } : later && { attempt: later.number, from: 0 };
      const isLast = next === undefined && isOver(job);
      return { attempt: number, from, lines, ...(!isLast && { next: next ?? { attempt: number, from: end } }) };
    }
    const live = (await this.parts.state.rows(trainingLogTable)).get(job.id) as unknown as TrainingLog | undefined;
    if (live?.attempt !== number) return { attempt: number, from, lines: [], next: { attempt: number, from } };
    const begin = Math.max(from, live.from);
    const lines = live.lines.slice(begin - live.from, begin - live.from + maxLines);
    return { attempt: number, from: begin, lines, next: { attempt: number, from: begin + lines.length } };
  }

  /** Calls `work` after all earlier work has ended. */
  private inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.last.catch(() => undefined).then(work);
    this.last = result;
    return result;
  }

  /** The jobs that have not ended. Throws ApiError (503) if another controller is the leader. */
  private async leading(): Promise<Map<string, Kept>> {
    const { gpuScheduler, clock } = this.parts;
    const { epoch } = gpuScheduler;
    if (epoch === undefined || epoch !== this.epoch) this.active = undefined;
    if (epoch === undefined) throw trainingJobsElsewhere();
    if (this.active === undefined) {
      this.active = await this.read(epoch);
      this.readAtMs = clock.monotonicMs();
    }
    return this.active;
  }

  /** Whether this controller has been the leader since the jobs were read. Throws ApiError (503) if not. */
  private checkTerm(): number {
    const { epoch } = this.parts.gpuScheduler;
    if (epoch !== undefined && epoch === this.epoch) return epoch;
    this.active = undefined;
    throw trainingJobsElsewhere();
  }

  private async read(epoch: number): Promise<Map<string, Kept>> {
    const isNewTerm = epoch !== this.epoch;
    this.epoch = epoch;
    const documents = await gpuDocuments(this.parts.store, jobPrefix);
    const all = await Promise.all(documents.map((document) => this.moved(document)));
    if (isNewTerm) {
      this.missing.clear();
      // The cluster's state may have been lost.
      for (const { job } of all) if (isOver(job)) await this.tellEnded(job);
    }
    const active = await Promise.all(all.filter(({ job }) => !isOver(job)).map((kept) => this.takenOver(kept)));
    return new Map(active.map((kept) => [kept.job.id, kept]));
  }

  /** A job whose document has the epoch of this term, so that an earlier leader's revisions of it are out of date. */
  private async takenOver(kept: Kept): Promise<Kept> {
    return kept.epoch === this.checkTerm() ? kept : this.write(kept);
  }

  /** A job whose document is found by its namespace: an earlier version had the id alone. */
  private async moved(document: StoredDocument): Promise<Kept> {
    const job = jobIn(document);
    const id = jobDocumentId(job);
    if (document._id === id) return keptOf(document);
    const { store, lock } = this.parts;
    const moved = { ...job, parameters: isOver(job) ? [] : lock(job.parameters, id) };
    await store.put('gpu', documentOf(moved, this.checkTerm())).catch((error: unknown) => {
      // A process that ended here had moved it already.
      if (!(error instanceof DocumentConflictError)) throw error;
    });
    await store.delete('gpu', document._id, String(document._rev));
    return keptOf(await store.get('gpu', id));
  }

  private async look(): Promise<void> {
    const { gpuScheduler, clock } = this.parts;
    if (this.closed || gpuScheduler.epoch === undefined || clock.monotonicMs() - this.readAtMs >= readMs) {
      this.active = undefined;
    }
    if (this.closed || gpuScheduler.epoch === undefined) return;
    const active = await this.leading();
    if (active.size === 0) return;
    const statuses = await this.statuses();
    for (const [id, kept] of [...active]) {
      try {
        await this.carryOn(kept, statuses.get(id));
      } catch (error) {
        this.parts.logger.error({ job: id, error: String(error) }, 'a training job could not be carried on');
        // Another leader has changed it: all are read again.
        if (error instanceof DocumentConflictError) this.active = undefined;
      }
      if (this.active === undefined) return;
    }
  }

  private async carryOn(kept: Kept, status: TrainingStatus | undefined): Promise<void> {
    const { job } = kept;
    const nowMs = this.parts.clock.now();
    if (job.state === 'waiting') {
      if (nowMs >= (job.retryAt ?? 0)) await this.beginAgain(kept);
      return;
    }
    const attempt = lastAttempt(job);
    if (attempt === undefined) return;
    if (job.state === 'stopping') await this.endRun(job);
    if (status?.activationId === attempt.activationId) {
      const running = whenRunning(job, status.invoker, nowMs);
      if (running !== job) await this.put({ ...kept, job: running });
    }
    const end = await this.endIfSeen(job, attempt);
    if (end === undefined) return;
    this.missing.delete(job.id);
    const latest = this.active?.get(job.id) ?? kept;
    await this.put({ ...latest, job: afterRun(latest.job, end, nowMs) });
  }

  /** How a run ended; undefined while it waits or runs, or may do so. */
  private async endIfSeen(job: TrainingJob, attempt: TrainingAttempt): Promise<RunEnd | undefined> {
    const { gpuScheduler, clock } = this.parts;
    const { activationId } = attempt;
    if (gpuScheduler.isQueued(activationId) || this.nodeWith(activationId) !== undefined) {
      this.missing.delete(job.id);
      return undefined;
    }
    const record = await this.recordOf(job, attempt);
    if (record !== undefined) return endOf(record);
    const nowMs = clock.monotonicMs();
    const sinceMs = this.missing.get(job.id) ?? nowMs;
    this.missing.set(job.id, sinceMs);
    return nowMs - sinceMs < lostMs ? undefined : lostRun;
  }

  private nodeWith(activationId: string): NodeStatus | undefined {
    const nodes = this.parts.gpuTable.nodes();
    return nodes.find(({ inHand = [] }) => inHand.some((one) => one.activationId === activationId));
  }

  /** Begins a further run. A run that is refused is tried again later, unless the action or its namespace is gone. */
  private async beginAgain(kept: Kept): Promise<void> {
    const { job } = kept;
    try {
      await this.begin(kept);
    } catch (error) {
      if (!isApiError(error)) throw error;
      const latest = this.active?.get(job.id) ?? kept;
      const isFinal = error.status < 500 && error.status !== 429;
      const end: RunEnd = { kind: isFinal ? 'final' : 'interrupted', reason: error.message, ranMs: 0 };
      await this.put({ ...latest, job: afterRun(latest.job, end, this.parts.clock.now()) });
    }
  }

  /**
   * Begins a run. Its id is stored first, so that a run is found after a crash. Throws ApiError of the invocation; the job
   * has the attempt then.
   */
  private async begin(kept: Kept): Promise<Kept> {
    const { clock, random, identities, resolver, invoker } = this.parts;
    const { job } = kept;
    const activationId = newActivationId(clock.now(), random);
    const begun = await this.put({ ...kept, job: withAttempt(job, activationId) });
    const name = parseActionName(job.action);
    if (name === undefined) throw new Error(`training job ${job.id} has the action '${job.action}'`);
    const identity = await identities.ofNamespace(job.namespace);
    const resolved = await resolver.resolve(identity, name);
    this.checkTerm();
    await invoker.invoke({
      ...resolved,
      identity,
      payload: payloadOf(job, this.parts.unlock),
      blocking: false,
      waitMs: 0,
      transactionId: newTransactionId(random),
      // The record tells how the run ended, whatever else is stored.
      extraLogging: true,
      training: runOf(begun.job),
      activationId,
    });
    return begun;
  }

  /** Ends the run of a job that is being stopped, wherever it is. */
  private async endRun(job: TrainingJob): Promise<void> {
    const { gpuScheduler, gpuDesired, gpuTable } = this.parts;
    const { activationId = '' } = lastAttempt(job) ?? {};
    gpuScheduler.cancel(activationId, trainingJobStopped());
    for (const { invoker, residents } of gpuTable.nodes()) {
      const resident = residents.find(({ activations }) => activations.includes(activationId));
      if (resident === undefined || gpuDesired.isRetiring(invoker, resident.container)) continue;
      await gpuDesired.retire(invoker, resident.container, job.graceMs ?? 0);
      return;
    }
  }

  /** Stores a job. Rejects with ApiError (503) after this term, DocumentConflictError if a later leader has taken it over. */
  private async write({ job, revision }: Kept): Promise<Kept> {
    const epoch = this.checkTerm();
    return { job, epoch, revision: await this.parts.store.put('gpu', documentOf(job, epoch, revision)) };
  }

  /** Stores a job as `write` does, and follows or ends it. */
  private async put(changed: Kept): Promise<Kept> {
    const { state } = this.parts;
    const { job } = changed;
    const kept = await this.write(changed);
    if (!isOver(job)) {
      this.active?.set(job.id, kept);
      return kept;
    }
    this.active?.delete(job.id);
    this.missing.delete(job.id);
    await this.tellEnded(job);
    await state.deleteRow(trainingLogTable, job.id);
    return kept;
  }

  /** Has the invokers remove the checkpoints of a job. */
  private tellEnded({ id, endedAt = 0 }: TrainingJob): Promise<void> {
    return this.parts.state.setRow(endedTrainingTable, id, endedAt as JsonValue);
  }

  private async forget({ job, revision }: Kept): Promise<void> {
    await this.parts.store.delete('gpu', jobDocumentId(job), revision);
    this.active?.delete(job.id);
    await this.parts.state.deleteRow(endedTrainingTable, job.id);
  }

  private async removeOldest(namespace: string): Promise<void> {
    const begun = this.begun.get(namespace) ?? removedEach;
    this.begun.set(namespace, begun < removedEach ? begun + 1 : 1);
    if (begun < removedEach) return;
    const own = await gpuDocuments(this.parts.store, namespacePrefix(namespace));
    const ended = own.map(keptOf).filter(({ job }) => isOver(job));
    ended.sort((one, other) => (other.job.endedAt ?? 0) - (one.job.endedAt ?? 0));
    for (const kept of ended.slice(maxEnded - removedEach)) await this.forget(kept);
  }

  /** The record of a run; undefined if it is not stored yet. */
  private async recordOf(
    { namespace }: TrainingJob,
    { activationId }: TrainingAttempt,
  ): Promise<WhiskActivation | undefined> {
    try {
      return readActivation(await this.parts.store.get('activations', activationDocumentId(namespace, activationId)));
    } catch (error) {
      if (error instanceof NoDocumentError) return undefined;
      throw error;
    }
  }
}
