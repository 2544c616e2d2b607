import { join } from 'node:path';
import type { ActivationResponse } from '@gpuwhisk/common/entities/activation';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { ClusterState, StateSubscription } from '@gpuwhisk/common/state/cluster-state';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import {
  endedTrainingTable,
  isTrainingJobId,
  readTrainingProgress,
  trainingLogTable,
  trainingRowTtlMs,
  trainingStatusTable,
} from '@gpuwhisk/common/training';
import type { TrainingLog, TrainingProgress, TrainingRun, TrainingStatus } from '@gpuwhisk/common/training';
import type { Call, CallLimits, Container } from '../containers/container-factory.js';
import { checkCheckpoints, removeCheckpoints } from '../containers/sandbox/checkpoints.js';
import { checkpointsFolder } from '../containers/training-launch.js';
import { applicationError, whiskError } from './activation-response.js';

/** Dependencies of TrainingRuns. */
export interface TrainingRunsParts {
  /** The topic of the invoker. */
  invoker: string;
  dataDir: string;
  state: Pick<ClusterState, 'setRow' | 'deleteRow' | 'rows' | 'watch'>;
  clock: Clock;
  logger: Logger;
  /** False while the cluster may count this invoker as lost. Absent: always true. */
  mayBegin?: () => boolean;
}

/** Interval of looks at the runs, ms. */
const lookMs = 1000;
/**
 * After so long without the cluster, ms, a node's runs are ended: before the leader, which sees them nowhere for two minutes,
 * begins others in their place.
 */
const fencedMs = 60_000;
/** The part of a run's log that others can read while it goes on: its last lines, and their characters. */
const [keptLines, keptCharacters] = [500, 64 * 1024];

/** A run of a training job in a container, from its start to its end. */
export class WatchedTraining {
  progress: TrainingProgress = {};
  /** The response of a run that the invoker has ended. */
  response: ActivationResponse | undefined;
  /** Limits of the run's call besides those of other calls. */
  readonly limits: Pick<CallLimits, 'onProgress'> = { onProgress: (report) => this.take(report) };
  private call: Call | undefined;
  private log: TrainingLog;
  private checkpointUsedMiB: number | undefined;

  constructor(
    readonly run: TrainingRun,
    private readonly message: ActivationMessage,
    readonly container: Container,
    private readonly folder: string,
  ) {
    this.log = { attempt: run.attempt, from: 0, lines: [] };
  }

  private take(report: string): void {
    try {
      this.progress = { ...this.progress, ...readTrainingProgress(JSON.parse(report)) };
    } catch {
      // The code of the job can write to the runtime's socket.
    }
  }

  began(call: Call): void {
    this.call = call;
  }

  /** Asks the members to end. */
  stop(): void {
    this.call?.stop?.();
  }

  statusAt(invoker: string): TrainingStatus {
    const { run, message, container, progress, checkpointUsedMiB } = this;
    const { slice, devices = [] } = message.gpu ?? {};
    return {
      attempt: run.attempt,
      activationId: message.activationId,
      invoker,
      container: container.id,
      devices: slice === undefined ? [...devices] : [slice],
      ...progress,
      ...(checkpointUsedMiB !== undefined && { checkpointUsedMiB }),
    };
  }

  /** The last lines of the log, if there are new ones since the last call. */
  newLog(): TrainingLog | undefined {
    const { log } = this;
    const added = this.call === undefined ? [] : this.container.printedSince(log.from + log.lines.length);
    if (added.length === 0) return undefined;
    const lines = [...log.lines, ...added].slice(-keptLines);
    let characters = lines.reduce((sum, line) => sum + line.length, 0);
    while (characters > keptCharacters && lines.length > 1) characters -= lines.shift()?.length ?? 0;
    this.log = { ...log, from: log.from + log.lines.length + added.length - lines.length, lines };
    return this.log;
  }

  /** Ends the run because another node may be given the next one. */
  async endFenced(): Promise<void> {
    this.response ??= whiskError('The invoker lost touch with the cluster while the action ran.');
    await this.container.destroy();
  }

  /** Ends the run if its checkpoints exceed their bound or fill the disk. */
  async checkCheckpoints(): Promise<void> {
    const { checkpointMiB } = this.run;
    if (checkpointMiB === undefined || this.response !== undefined) return;
    const { usedMiB, problem } = await checkCheckpoints(this.folder, checkpointMiB);
    this.checkpointUsedMiB = usedMiB;
    if (problem === undefined) return;
    this.response = applicationError(`The training job was ended: ${problem}.`);
    this.progress = { ...this.progress, end: 'checkpoint' };
    await this.container.destroy();
  }
}

/** The runs of training jobs on this node: reports them to the cluster, and keeps and removes their checkpoints. */
export class TrainingRuns {
  private readonly runs = new Set<WatchedTraining>();
  private readonly folder: string;
  private subscription: StateSubscription | undefined;
  private timer: Timer | undefined;
  private looking: Promise<void> = Promise.resolve();
  private closed = false;
  /** Monotonic ms since which the cluster may count this invoker as lost. */
  private fencedSinceMs: number | undefined;

  constructor(private readonly parts: TrainingRunsParts) {
    this.folder = checkpointsFolder(parts.dataDir);
  }

  /** Begins to report runs, and removes the checkpoints of jobs that have ended. */
  async open(): Promise<void> {
    const { state } = this.parts;
    this.subscription = await state.watch(endedTrainingTable, (job, row) => {
      if (row !== undefined) void this.forget(job);
    });
    for (const job of (await state.rows(endedTrainingTable)).keys()) await this.forget(job);
    this.lookLater();
  }

  /** Watches the run of a message from now on. */
  watch(run: TrainingRun, message: ActivationMessage, container: Container): WatchedTraining {
    const watched = new WatchedTraining(run, message, container, join(this.folder, run.job));
    this.runs.add(watched);
    return watched;
  }

  /** Looks at the checkpoints of a run now, and ends it if they exceed their bound or fill the disk. Never rejects. */
  async lookAt(watched: WatchedTraining): Promise<void> {
    try {
      await watched.checkCheckpoints();
    } catch (error) {
      const { job } = watched.run;
      this.parts.logger.error(
        { job, error: String(error) },
        'the checkpoints of a training job could not be looked at',
      );
    }
  }

  /** Called when a run's call has ended. Resolves once its output is read and none of its processes is left. */
  async ended(watched: WatchedTraining, logs: Promise<unknown>): Promise<void> {
    await logs;
    await watched.container.destroy();
    this.runs.delete(watched);
    const { state, logger } = this.parts;
    const { job } = watched.run;
    // Rows that cannot be deleted expire.
    state.deleteRow(trainingStatusTable, job).catch((error: unknown) => {
      logger.warn({ job, error: String(error) }, 'the status of a training job could not be removed');
    });
  }

  /** Asks all runs to end, so that they can write a last checkpoint. */
  stopAll(): void {
    for (const run of this.runs) run.stop();
  }

  async close(): Promise<void> {
    this.closed = true;
    this.timer?.cancel();
    await this.subscription?.close();
    await this.looking;
  }

  private lookLater(): void {
    if (this.closed) return;
    this.timer = this.parts.clock.setBackgroundTimer(lookMs, () => {
      this.looking = this.look().finally(() => this.lookLater());
    });
  }

  private isFenced(): boolean {
    const { mayBegin, clock } = this.parts;
    if (mayBegin?.() !== false) this.fencedSinceMs = undefined;
    else this.fencedSinceMs ??= clock.monotonicMs();
    return this.fencedSinceMs !== undefined && clock.monotonicMs() - this.fencedSinceMs >= fencedMs;
  }

  private async look(): Promise<void> {
    if (this.isFenced()) await Promise.all([...this.runs].map((run) => run.endFenced()));
    for (const run of [...this.runs]) {
      try {
        await run.checkCheckpoints();
        // It may have ended meanwhile.
        if (this.runs.has(run)) await this.tell(run);
      } catch (error) {
        const { job } = run.run;
        this.parts.logger.error({ job, error: String(error) }, 'a run of a training job could not be looked at');
      }
    }
  }

  private async tell(run: WatchedTraining): Promise<void> {
    const { state, invoker } = this.parts;
    const { job } = run.run;
    const status = run.statusAt(invoker) as unknown as JsonValue;
    await state.setRow(trainingStatusTable, job, status, trainingRowTtlMs);
    const log = run.newLog();
    if (log !== undefined) await state.setRow(trainingLogTable, job, log as unknown as JsonValue);
  }

  private async forget(job: string): Promise<void> {
    if (!isTrainingJobId(job)) return;
    try {
      // The job may have been given up while a run of it goes on here.
      const runs = [...this.runs].filter(({ run }) => run.job === job);
      await Promise.all(runs.map(({ container }) => container.destroy()));
      await removeCheckpoints(join(this.folder, job));
    } catch (error) {
      this.parts.logger.error({ job, error: String(error) }, 'checkpoints of an ended job could not be removed');
    }
  }
}
