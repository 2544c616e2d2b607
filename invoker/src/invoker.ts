import { ActivationFeed } from '@gpuwhisk/common/activations/activation-feed';
import type { ActivityReporter } from '@gpuwhisk/common/activations/activity';
import { isRecorded } from '@gpuwhisk/common/activations/record-policy';
import { showRecords, RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import type { RecordLevels } from '@gpuwhisk/common/activations/record-policy';
import type { RecordWriterOptions } from '@gpuwhisk/common/activations/record-writer';
import { coldStartMetrics } from '@gpuwhisk/common/gpu-metrics';
import { busMetrics } from '@gpuwhisk/common/metrics';
import { TopicFullError } from '@gpuwhisk/common/bus/message-bus';
import type { MessageBus } from '@gpuwhisk/common/bus/message-bus';
import type { ActivationResponse, WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { ResultBounds } from '@gpuwhisk/common/entities/limits';
import type { UnlockArguments } from '@gpuwhisk/common/entities/parameter-encryption';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import type { InHand } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ActivationMessage, InvokerInstanceId } from '@gpuwhisk/common/messages';
import type { Metrics } from '@gpuwhisk/common/metrics';
import type { Prewarmer } from '@gpuwhisk/common/prewarmer';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Tracer } from '@gpuwhisk/common/tracing';
import type { UserEvents } from '@gpuwhisk/common/user-events';
import { ActionLoader } from './activation/action-loader.js';
import type { RunnableAction } from './activation/action-loader.js';
import { complete, giveBack, refuse } from './activation/activation-end.js';
import { activationRecord } from './activation/activation-record.js';
import { applicationError, whiskError } from './activation/activation-response.js';
import { ActivationRun } from './activation/activation-run.js';
import type { FollowedRuns } from './activation/followed-runs.js';
import type { InvokerContext, StartJournal } from './activation/invoker-context.js';
import type { LearnedImports } from './activation/learned-imports.js';
import { LearnedStarts } from './activation/learned-starts.js';
import type { TrainingRuns } from './activation/training-runs.js';
import type { ContainerFactory, ContainerSpec } from './containers/container-factory.js';
import type { GpuAgent } from './gpu-agent/gpu-agent.js';
import { gpuUserOf } from './gpu-agent/gpu-runs.js';
import type { GpuRuns } from './gpu-agent/gpu-runs.js';
import { ContainerPool } from './pool/container-pool.js';
import type { PoolOptions, PoolSnapshot } from './pool/container-pool.js';
import { showPool } from './pool/pool-metrics.js';

/** Dependencies of an Invoker. */
export interface InvokerDependencies {
  instance: number;
  bus: MessageBus;
  store: ArtifactStore;
  factory: ContainerFactory;
  marks: StartJournal;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  /** Absent: no user events are sent. */
  userEvents?: UserEvents;
  /** Absent: nothing is traced. */
  tracer?: Tracer;
  pool: PoolOptions;
  /** The system's bounds on results; a namespace may have narrower ones. */
  resultBounds: ResultBounds;
  /** Idle containers with a GPU that are kept for a namespace without a limit of its own; absent: any number. */
  warmGpuContainers?: number | undefined;
  /** Which records are stored. */
  recordLevels: RecordLevels;
  /** Bounds on records that wait for the store; absent: the writer's defaults. */
  recordBounds?: Partial<RecordWriterOptions>;
  /** Namespaces whose activations are refused; absent: none. */
  blacklist?: { has(namespace: string): boolean };
  /** Largest number of activations that were taken from the bus and whose records are not yet durable. */
  maxInFlight: number;
  /** Decrypts arguments that come encrypted. */
  unlockArguments: UnlockArguments;
  /** The kind that a stored `<family>:default` or major version means on this invoker; absent: none. */
  defaultKind?: (kind: string) => string | undefined;
  /** The agent of this node's GPUs; absent on nodes without GPUs. */
  gpu?: InvokerGpus;
  /** The runs of training jobs; absent on nodes without GPUs. */
  trainings?: TrainingRuns;
  /** Counts the activations that end; absent: nothing is counted. */
  activity?: Pick<ActivityReporter, 'ended'>;
  /** What was learned of actions' imports; absent: imports are not learned. */
  learned?: LearnedImports;
  /** Sends lines of runs to those who follow them. Absent: runs cannot be followed. */
  followed?: Pick<FollowedRuns, 'began' | 'left' | 'ended'>;
  /** Whether runs may begin: false while the cluster may count this invoker as lost. Absent: always. */
  mayBegin?: () => boolean;
}

/** The GPU agent as the invoker uses it. */
export type InvokerGpus = GpuRuns & Pick<GpuAgent, 'ledger' | 'attach' | 'admit'>;

/** Attempts to return an activation to a full topic for a new placement, and the interval between two, ms. */
const maxRoomLooks = 6000;
const roomLookMs = 100;

/** Takes activations from its topic, runs them in containers and records them. */
export class Invoker {
  private readonly context: InvokerContext;
  private readonly loader: ActionLoader;
  private readonly pool: ContainerPool<ActivationRun>;
  private readonly feed: ActivationFeed;
  private closing = false;
  /** Messages in hand that closing keeps from beginning. */
  private notBegun = 0;

  constructor(private readonly dependencies: InvokerDependencies) {
    const { bus, store, factory, marks, clock, logger, metrics, pool, resultBounds, recordLevels, unlockArguments } =
      dependencies;
    const instance: InvokerInstanceId = {
      instance: dependencies.instance,
      userMemory: `${pool.memoryMiB} MB`,
      instanceType: 'invoker',
      tags: [],
      dedicatedNamespaces: [],
    };
    const records = new RecordWriter(store, clock, logger, dependencies.recordBounds);
    showRecords(metrics.registry, 'invoker', records);
    this.context = {
      instance,
      bus,
      records,
      marks,
      clock,
      logger,
      metrics,
      resultBounds,
      warmGpuContainers: dependencies.warmGpuContainers,
      recordLevels,
      unlockArguments,
      isClosing: () => this.closing,
      ...(dependencies.activity && { activity: dependencies.activity }),
      ...(dependencies.userEvents && { userEvents: dependencies.userEvents }),
      ...(dependencies.tracer && { tracer: dependencies.tracer }),
      ...(dependencies.gpu && {
        gpu: dependencies.gpu,
        coldStarted: coldStartMetrics(dependencies.metrics.registry),
      }),
      ...(dependencies.trainings && { trainings: dependencies.trainings }),
      ...(dependencies.followed && { followed: dependencies.followed }),
      ...(dependencies.mayBegin && { mayBegin: dependencies.mayBegin }),
    };
    const { learned } = dependencies;
    if (learned !== undefined)
      this.context.learned = new LearnedStarts(learned, metrics.registry, (spec) => this.pool.foresee(spec));
    const defaultKind = (kind: string): string | undefined => dependencies.defaultKind?.(kind);
    this.loader = new ActionLoader(
      store,
      clock,
      () => this.closing,
      defaultKind,
      learned !== undefined,
      factory.installsNpm,
    );
    const { gpu } = dependencies;
    const failedAhead = (spec: ContainerSpec, error: unknown): void => this.context.learned?.failedAhead(spec, error);
    this.pool = new ContainerPool(
      factory,
      clock,
      { ...pool, failedAhead, ...(gpu && { devices: gpu.ledger }) },
      logger,
    );
    showPool(metrics.registry, this.pool);
    if (factory.snapshot !== undefined) this.context.snapshots = this.pool;
    gpu?.attach({
      end: (container) => this.pool.end(container),
      unbound: () => new Set(this.pool.prewarmed().map(({ id }) => id)),
      inHand: () => this.feed.held().flatMap(inHandOf),
    });
    const topic = `invoker${dependencies.instance}`;
    const counts = busMetrics(metrics.registry);
    this.feed = new ActivationFeed(bus, topic, dependencies.maxInFlight, {
      accept: (message, done) => this.accept(message, done),
      recover: (message, done) => void this.recover(message, done),
      malformed: (offset, reason) => {
        counts.malformed(topic);
        logger.warn({ topic, offset, reason }, 'a message that is no activation was skipped');
      },
    });
  }

  /** Opens the feed and starts the stem cells. The factory must have been started. */
  async start(): Promise<void> {
    await this.feed.open();
    void this.pool.prewarm();
  }

  /** Containers that are ready for a future action, and snapshots of functions, of which further containers are copies. */
  prewarmers(): Prewarmer[] {
    const invoker = `invoker${this.dependencies.instance}`;
    const snapshots = this.pool.snapshots.list().map(({ sinceMs: since, ...shown }) => {
      return { invoker, container: 'snapshot', imports: [], cuda: false, since, ...shown };
    });
    const containers = this.pool
      .prewarmed()
      .map(({ id: container, pid, msContainer, cudaContext, unfit, sinceMs: since, spec }) => {
        const { kind, memoryMiB, imports, cuda } = spec;
        const known = {
          ...(msContainer !== undefined && { msContainer }),
          ...(pid !== undefined && { pid }),
          ...(cudaContext !== undefined && { cudaContext }),
          ...(unfit !== undefined && { unfit }),
        };
        return { invoker, container, kind, memoryMiB, imports, cuda, since, ...known };
      });
    return [...containers, ...snapshots];
  }

  snapshot(): PoolSnapshot & { pending: number } {
    return { ...this.pool.snapshot(), pending: this.feed.pending };
  }

  /**
   * Takes no more messages and begins nothing more, waits up to `drainMs` for what runs, then ends every container and stores
   * pending records. What has not begun runs after the next start.
   */
  async close(drainMs: number): Promise<void> {
    this.closing = true;
    const { clock, trainings } = this.dependencies;
    this.notBegun += this.pool.dropWaiting((run) => !run.isMarked);
    await this.feed.close();
    trainings?.stopAll();
    const untilMs = clock.monotonicMs() + drainMs;
    while (this.feed.pending > this.notBegun && clock.monotonicMs() < untilMs) await sleep(clock, 20);
    await this.pool.close();
    await this.dependencies.learned?.close();
    await this.context.records.close();
  }

  private accept(message: ActivationMessage, done: () => void): void {
    const namespace = message.user.namespace.name;
    if (this.dependencies.blacklist?.has(namespace)) {
      this.context.logger.warn({ namespace, activationId: message.activationId }, 'a blocked namespace was refused');
      const text = 'The action was not invoked due to a blacklisted namespace.';
      refuse(this.context, message, this.unrunRecord(message, undefined, applicationError(text)));
      done();
      return;
    }
    const action = this.loader.cached(message.action, message.revision);
    if (action !== undefined) this.submit(message, action, done);
    else void this.loadAndSubmit(message, done);
  }

  private async loadAndSubmit(message: ActivationMessage, done: () => void): Promise<void> {
    const loaded = await this.loader.load(message.action, message.revision);
    if ('action' in loaded) this.submit(message, loaded.action, done);
    else {
      this.context.logger.warn({ activationId: message.activationId, reason: loaded.reason }, loaded.failure);
      this.recordWhiskError(message, undefined, loaded.failure, done);
    }
  }

  private submit(message: ActivationMessage, action: RunnableAction, done: () => void): void {
    if (this.closing) {
      this.notBegun += 1;
      return;
    }
    const refusal = this.gpuRefusal(message);
    if (refusal !== undefined && message.launch === undefined) {
      void this.giveBack(message, action, refusal);
      return;
    }
    const run = new ActivationRun(this.context, message, action, {
      stored: done,
      retry: (retried) => this.pool.submit(retried),
      giveBack: (refused) => void this.giveBack(message, action, refused),
    });
    if (message.launch === undefined) this.pool.submit(run);
    else if (refusal === undefined) this.pool.launch(run);
    else run.launched(refusal);
  }

  /** Why an activation is refused the GPU of its placement; undefined if it is admitted or needs none. */
  private gpuRefusal(message: ActivationMessage): string | undefined {
    if (message.gpu === undefined) return undefined;
    const { gpu } = this.dependencies;
    return gpu === undefined ? 'this invoker has no GPU' : gpu.admit(message.gpu, gpuUserOf(message));
  }

  /** Returns an activation whose placement the agent refused to its controller. */
  private async giveBack(message: ActivationMessage, action: RunnableAction, refused: string): Promise<void> {
    // The activation may be delivered again before the log has synced.
    const end = this.feed.letGo(message.activationId);
    try {
      await giveBack(this.context, { activation: message, refused });
      end();
    } catch (error) {
      this.context.logger.error({ error: String(error) }, 'an activation could not be returned to its controller');
      this.recordWhiskError(message, action, refused, () => end(true));
    }
  }

  /**
   * Returns an activation with a GPU that an earlier process of this invoker left to the scheduler, which decides again.
   * After a crash the scheduler may have the activation, too, and only one of the two may decide about it.
   */
  private async placeAgain(message: ActivationMessage, done: () => void): Promise<void> {
    try {
      for (let look = 1; !(await this.isGivenBack(message, look === maxRoomLooks)); look++) {
        await sleep(this.dependencies.clock, roomLookMs);
        if (this.closing) return;
      }
    } catch (error) {
      this.context.logger.warn({ error: String(error) }, 'an activation stays on the GPU where it was placed');
      this.accept(message, done);
      return;
    }
    const latest = this.feed.latest(message.activationId);
    // The scheduler may have sent a new placement meanwhile, and earlier processes may have left several messages.
    if (latest === undefined) this.feed.letGo(message.activationId)();
    else this.accept(latest, done);
  }

  /** Returns an activation to its controller; false if the topic is full. At the `last` attempt a full topic is an error. */
  private async isGivenBack(message: ActivationMessage, last: boolean): Promise<boolean> {
    try {
      await giveBack(this.context, { activation: message, restarted: true });
      return true;
    } catch (error) {
      if (last || !(error instanceof TopicFullError)) throw error;
      return false;
    }
  }

  /**
   * Handles a message that an earlier process may have taken, by whether its activation was recorded, started, or neither.
   */
  private async recover(message: ActivationMessage, done: () => void): Promise<void> {
    // An instance of the earlier process has ended with it; the controller launches another one if needed.
    if (message.launch !== undefined) {
      done();
      return;
    }
    if (await isRecorded(this.dependencies, message)) {
      done();
      return;
    }
    if (!this.dependencies.marks.startedBefore(message.activationId)) {
      if (message.gpu === undefined) this.accept(message, done);
      else void this.placeAgain(message, done);
      return;
    }
    const loaded = await this.loader.load(message.action, message.revision);
    const action = 'action' in loaded ? loaded.action : undefined;
    const isIdempotent = action !== undefined && parameterValue(action.annotations, 'idempotent') === true;
    // A training job decides itself about its next run.
    if (isIdempotent && message.training === undefined) {
      if (message.gpu === undefined) this.submit(message, action, done);
      else void this.placeAgain(message, done);
      return;
    }
    this.recordWhiskError(message, action, 'The invoker stopped while the action ran.', done);
  }

  private recordWhiskError(
    message: ActivationMessage,
    action: RunnableAction | undefined,
    text: string,
    done: () => void,
  ): void {
    const record = this.unrunRecord(message, action, whiskError(text));
    if (message.launch !== undefined) {
      refuse(this.context, message, record);
      done();
      return;
    }
    complete(this.context, message, record, { answer: message.blocking ? record : undefined }, done);
  }

  private unrunRecord(
    message: ActivationMessage,
    action: RunnableAction | undefined,
    response: ActivationResponse,
  ): WhiskActivation {
    const nowMs = this.context.clock.now();
    const times = { startMs: nowMs, endMs: nowMs, waitMs: Math.max(0, nowMs - message.transid[1]) };
    return activationRecord(message, action, times, response, false);
  }
}

function inHandOf({ gpu, activationId }: ActivationMessage): InHand[] {
  if (gpu === undefined) return [];
  const { at, epoch, version } = gpu;
  return [{ activationId, at, epoch, version }];
}
