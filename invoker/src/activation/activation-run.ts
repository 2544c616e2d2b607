import type { LargeCode } from '@gpuwhisk/common/entities/large-code';
import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { ActivationResponse } from '@gpuwhisk/common/entities/activation';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import type { Placement } from '@gpuwhisk/common/gpu';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { sleep } from '@gpuwhisk/common/system/clock';
import { problemOf } from '../containers/container-factory.js';
import type {
  Container,
  ContainerSpec,
  InitRequest,
  CallOutcome,
  ProvisioningError,
  RunRequest,
} from '../containers/container-factory.js';
import {
  batchLimits,
  batchOf,
  isFailure,
  mayHaveFailed,
  outcomesOf,
  repeated,
} from '../containers/protocol/call-outcome.js';
import { gpuUserOf } from '../gpu-agent/gpu-runs.js';
import type { GpuUser } from '../gpu-agent/gpu-runs.js';
import type { PoolJob } from '../pool/action-queue.js';
import type { Disposition, PoolMember } from '../pool/pool-member.js';
import { fullyQualifiedName } from './action-loader.js';
import type { RunnableAction } from './action-loader.js';
import { endActivation, momentOf, refuse } from './activation-end.js';
import type { Ended, Found, Load, Moment } from './activation-end.js';
import { activationRecord, startParts } from './activation-record.js';
import { ActivationTrace } from './activation-trace.js';
import { developerError, initResponse, runResponse, whiskError } from './activation-response.js';
import { containerWanted, callLimits, deadlineMs, runLimits, initRequest, runRequest } from './container-requests.js';
import { noteLoaded } from './loaded-functions.js';
import { measureRun } from './run-figures.js';
import type { WatchedTraining } from './training-runs.js';
import type { InvokerContext } from './invoker-context.js';

/** Attempts of an activation: containers that shut down may refuse its run before the activation fails. */
const maxTries = 3;
/** Why a sample is not run in a batch. */
const noBatches = 'The runtime of the action takes no batches.';
/** Interval of checks whether runs may begin again, while none may, ms. */
const fenceLookMs = 100;

/** An activation that is ready to run. */
interface Prepared {
  run: ActivationRun;
  /** Decrypted arguments. */
  content: ActivationMessage['content'];
}

/** Callbacks of an activation's end; one of the three is called. */
export interface RunEnd {
  /** The record is durable: the message may leave the bus. */
  stored(): void;
  /** A container refused the run, which needs another container. */
  retry(run: ActivationRun): void;
  /** The GPU of the placement is not available: the controller decides again. */
  giveBack(reason: string): void;
}

/** One activation as a job of the pool: init if needed, run, acknowledge, record. */
export class ActivationRun implements PoolJob<ActivationRun> {
  readonly key: string;
  readonly namespace: string;
  readonly codeOf: string;
  readonly spec: ContainerSpec;
  readonly batch: number;
  /** The activation's GPU identity, or undefined for CPU actions. */
  private readonly gpuUser: GpuUser | undefined;
  /** Absent: the activation is not traced. */
  private readonly trace: ActivationTrace | undefined;
  private tries = 0;
  /** Its start was marked: if this process does not run it, no other one does. */
  isMarked = false;
  /** A batch with it has failed as a whole. */
  runsAlone = false;

  constructor(
    private readonly context: InvokerContext,
    private readonly message: ActivationMessage,
    private readonly action: RunnableAction,
    private readonly end: RunEnd,
  ) {
    ({
      key: this.key,
      namespace: this.namespace,
      codeOf: this.codeOf,
      spec: this.spec,
      batch: this.batch,
    } = containerWanted(message, action, context.learned));
    this.gpuUser = message.gpu && gpuUserOf(message);
    const { tracer, instance, clock } = context;
    if (tracer !== undefined && message.sample === undefined && message.launch === undefined) {
      const invoker = `invoker${instance.instance}`;
      this.trace = new ActivationTrace(tracer, message, action, { invoker, nowMs: clock.now() });
    }
  }

  get together(): Placement['together'] {
    return this.message.gpu?.together;
  }

  get readiesAhead(): boolean {
    return this.action.warm.entry !== undefined && this.message.training === undefined;
  }

  async ready({ container }: PoolMember): Promise<string | undefined> {
    const user = this.message.launch === true ? this.gpuUser : undefined;
    if (user !== undefined) this.context.gpu?.began(user, container.id);
    try {
      const content = this.unlockedContent();
      const init = await this.initRequest(content, container, undefined);
      if (init === undefined) return 'its code could not be read';
      const beganMs = this.context.clock.monotonicMs();
      const call = container.init(init, callLimits(this.context, this.message, this.action));
      const problem = problemOf(await call.outcome.finally(() => init.large?.passed()));
      if (problem === undefined) this.noteLoad(container, this.context.clock.monotonicMs() - beganMs);
      return problem;
    } catch (error) {
      return String(error);
    } finally {
      if (user !== undefined) this.context.gpu?.ended(user);
    }
  }

  launched(problem: string | undefined): void {
    const { context, message, action } = this;
    if (this.gpuUser !== undefined) context.gpu?.ended(this.gpuUser);
    if (problem !== undefined) {
      const what = { action: fullyQualifiedName(action), activationId: message.activationId, problem };
      context.logger.warn(what, 'an instance could not be launched');
    }
    const nowMs = context.clock.now();
    const waitMs = Math.max(0, nowMs - message.transid[1]);
    const times = { startMs: nowMs, endMs: nowMs, waitMs, start: 'cold' as const };
    const response =
      problem === undefined ? { statusCode: ActivationStatus.success } : whiskError(`The instance failed: ${problem}.`);
    refuse(context, message, activationRecord(message, action, times, response, false));
    this.end.stored();
  }

  get keepsWarm(): number | undefined {
    const { sample, user } = this.message;
    // Samples of a function follow one another closely and then end, so that they keep any number of containers.
    return sample === undefined ? (user.limits.warmGpuContainers ?? this.context.warmGpuContainers) : undefined;
  }

  slackMs(runMs: number): number {
    const { gpuNeed, transid } = this.message;
    return gpuNeed?.sloMs === undefined ? Infinity : transid[1] + gpuNeed.sloMs - this.context.clock.now() - runMs;
  }

  async run(member: PoolMember, onInitialized: () => void, others: readonly ActivationRun[]): Promise<Disposition> {
    const { records, mayBegin } = this.context;
    if (mayBegin?.() === false) {
      while (!mayBegin() && !this.context.isClosing()) await sleep(this.context.clock, fenceLookMs);
      // The run has not begun: the next process of this invoker runs the activation, or a controller reassigns it.
      if (this.context.isClosing()) return 'discard';
    }
    if (records.isFull) {
      await records.room();
      // The run has not begun: the next process of this invoker runs the activation.
      if (this.context.isClosing()) return 'discard';
    }
    const found: Found = { found: member.initialized && !member.used ? 'prewarmed' : 'warm' };
    member.used = true;
    if (others.length === 0 && this.gpuUser === undefined) {
      const self = this.prepare();
      const prepared = self instanceof Promise ? await self : self;
      return prepared === undefined ? 'keep' : this.runFollowed(prepared, [], member, found, onInitialized);
    }
    const all: readonly ActivationRun[] = [this, ...others];
    const users = all.flatMap(({ gpuUser }) => gpuUser ?? []);
    for (const user of users) this.context.gpu?.began(user, member.container.id);
    try {
      const prepared = await Promise.all(all.map((run) => run.prepare()));
      const [first, ...rest] = prepared.filter((one) => one !== undefined);
      return first === undefined ? 'keep' : await first.run.runFollowed(first, rest, member, found, onInitialized);
    } finally {
      for (const user of users) this.context.gpu?.ended(user);
    }
  }

  /**
   * Marks the activation as started and decrypts its arguments; undefined if either failed and ended the activation.
   * Synchronous for a blocking activation, whose caller has no promise of a durable mark.
   */
  private prepare(): Prepared | undefined | Promise<Prepared | undefined> {
    this.isMarked = true;
    try {
      const markSynced = this.context.marks.mark(this.message.activationId);
      if (this.message.blocking) return this.unlocked();
      return markSynced().then(
        () => this.unlocked(),
        (error: unknown) => this.unmarked(error),
      );
    } catch (error) {
      return this.unmarked(error);
    }
  }

  private unmarked(error: unknown): undefined {
    this.context.logger.error({ error: String(error) }, 'a start mark could not be written');
    this.failNow(whiskError('Failed to provision resources to run the action.'));
  }

  /** The decrypted arguments. Throws LockedParameterError. */
  private unlockedContent(): ActivationMessage['content'] {
    const { content, lockedArgs, lockedIn } = this.message;
    return this.context.unlockArguments(content, lockedArgs, lockedIn);
  }

  private unlocked(): Prepared | undefined {
    try {
      return { run: this, content: this.unlockedContent() };
    } catch (error) {
      this.failNow(whiskError((error as Error).message));
      return undefined;
    }
  }

  /** As runWith; those who follow the logs get the lines as they are printed. */
  private async runFollowed(...given: Parameters<ActivationRun['runWith']>): Promise<Disposition> {
    const [self, rest, { container }] = given;
    const { followed } = this.context;
    if (followed === undefined) return this.runWith(...given);
    const printed = container.spec.concurrency === 1 ? (from: number) => container.printedSince(from) : undefined;
    const all = [self, ...rest].map(({ run }) => run);
    for (const { message, namespace } of all) followed.began(message.activationId, namespace, printed);
    try {
      return await this.runWith(...given);
    } finally {
      for (const { message } of all) followed.left(message.activationId, printed);
    }
  }

  /** Loads the code if the container lacks it, and runs this activation and the `rest` as one. */
  private async runWith(
    self: Prepared,
    rest: readonly Prepared[],
    member: PoolMember,
    found: Found,
    onInitialized: () => void,
  ): Promise<Disposition> {
    const { container } = member;
    const all: readonly [Prepared, ...Prepared[]] = [self, ...rest];
    const init = member.initialized
      ? undefined
      : await this.initRequest(self.content, container, deadlineMs(this.context, this.message, this.action));
    if (!member.initialized && init === undefined) {
      for (const { run } of all) run.failNow(whiskError('Action could not be fetched.'));
      return 'discard';
    }
    // The time before is the activation's wait. The time after is its duration, which the time limits bound.
    const start = momentOf(this.context.clock);
    let load: Load | undefined;
    if (init !== undefined) {
      this.trace?.loading();
      const loaded = await this.loadInto(member, init, start, all);
      if (typeof loaded === 'string') return loaded;
      load = loaded;
      onInitialized();
    }
    const limits = callLimits(this.context, this.message, this.action);
    const untilMs = deadlineMs(this.context, this.message, this.action);
    const [request, ...further] = all.map(({ run, content }) =>
      runRequest(this.action, run.message, content, untilMs, run.trace?.running()),
    ) as [RunRequest, ...RunRequest[]];
    const alone = further.length === 0;
    const size = alone ? (this.message.sample?.batch ?? 1) : all.length;
    if (alone && size > 1 && !container.canBatch) {
      await this.finish({
        ...{ start, load: load ?? found, timedOut: false, logs: Promise.resolve([]) },
        response: developerError(noBatches),
      });
      return 'keep';
    }
    const watched = this.watchTraining(container);
    const figuresOf = measureRun(this.context.gpu, this.gpuUser);
    const ownLimits = runLimits(limits, this.message);
    const call =
      size === 1
        ? container.run(request, watched === undefined ? ownLimits : { ...ownLimits, ...watched.limits })
        : container.run(alone ? repeated(request, size) : batchOf([request, ...further]), batchLimits(ownLimits));
    watched?.began(call);
    const outcome = await this.ownOutcome(container, await call.outcome);
    if (watched !== undefined) {
      // A full disk is a reason that the job's code need not name.
      if (isFailure(outcome)) await this.context.trainings?.lookAt(watched);
      await this.context.trainings?.ended(watched, call.logs);
    }
    if (outcome.type === 'unavailable') return retryElsewhere(all);
    if (this.cutShort(outcome) || this.runsAgain(container, outcome, all)) return 'discard';
    const each = size === 1 ? [outcome] : outcomesOf(outcome, size, limits);
    // A sample's batch has one record, which tells of the first request that failed.
    const outcomes = alone ? [each.find(({ type }) => type !== 'result') ?? each[0] ?? outcome] : each;
    if (this.splits(outcomes)) {
      for (const { run } of all) run.runAlone();
      return outcome.type === 'result' ? 'keep' : this.afterFailure(container, outcome);
    }
    let kept = outcome.type === 'result' || outcome.type === 'oversize';
    const ends = all.map(({ run }, at) => {
      // The first activation of a batch carries the load in its record.
      const how: Load | Found = at === 0 && load !== undefined ? load : found;
      const own = outcomes[at] ?? outcome;
      const response =
        watched?.response ??
        this.endedByAgent(container, own) ??
        runResponse(own, ownLimits.timeoutMs, limits.maxResultBytes);
      if (response.statusCode > ActivationStatus.applicationError) kept = false;
      if (this.message.sample === undefined) {
        this.context.metrics.activationStarted(this.action.kind, 'start' in how ? how.start : how.found);
      }
      const times = { ...how, ...figuresOf(outcome, size, watched?.progress) };
      return run.finish({ start, load: times, response, timedOut: own.type === 'timeout', logs: call.logs });
    });
    await (alone ? ends[0] : Promise.all(ends));
    // The container of a training job is for one run.
    if (watched !== undefined) return 'discard';
    return kept ? 'keep' : this.afterFailure(container, outcome);
  }

  /** Begins to watch the run of a training job; undefined for other runs. */
  private watchTraining(container: Container): WatchedTraining | undefined {
    const { training } = this.message;
    const watched = training && this.context.trainings?.watch(training, this.message, container);
    if (watched !== undefined) this.context.gpu?.onRetire(container.id, () => watched.stop());
    return watched;
  }

  /** Loads the code. Returns the container's disposition if the load failed; `all` have ended or were retried then. */
  private async loadInto(
    member: PoolMember,
    init: InitRequest,
    start: Moment,
    all: readonly Prepared[],
  ): Promise<Load | Disposition> {
    const { clock } = this.context;
    const { container } = member;
    const beganMs = clock.monotonicMs();
    const codeBytes = init.large?.bytes.length;
    const call = container.init(init, callLimits(this.context, this.message, this.action));
    const told = await call.outcome.finally(() => init.large?.passed());
    const outcome = await this.ownOutcome(container, told);
    const load: Load = { initMs: Math.round(clock.monotonicMs() - beganMs), start: member.origin };
    if (outcome.type === 'unavailable') return retryElsewhere(all);
    if (this.cutShort(outcome) || this.runsAgain(container, outcome, all)) return 'discard';
    if (outcome.type !== 'ok') {
      const { timeout: timeoutMs, memory: memoryMiB } = this.action.limits;
      const response =
        this.endedByAgent(container, outcome) ?? initResponse(outcome, { timeoutMs, memoryMiB, codeBytes });
      const timedOut = outcome.type === 'timeout';
      await Promise.all(all.map(({ run }) => run.finish({ start, load, response, timedOut, logs: call.logs })));
      return this.afterFailure(container, outcome);
    }
    member.initialized = true;
    member.loadMs = load.initMs;
    this.noteLoad(container, load.initMs);
    const { message, action } = this;
    const saved = noteLoaded(this.context, { job: this, message, action, container, outcome, initMs: load.initMs });
    const known = saved === undefined ? load : { ...load, saved };
    return this.gpuUser === undefined ? known : { ...known, parts: startParts(member, outcome.loadTimes) };
  }

  fail(error: ProvisioningError): void {
    // The run has not begun: the next process of this invoker runs the activation.
    if (this.context.isClosing()) return;
    if (this.gpuUser !== undefined) {
      this.context.gpu?.ended(this.gpuUser);
      if (error.elsewhere) return this.giveBack(error.told);
    }
    this.context.logger.warn(
      { action: fullyQualifiedName(this.action), activationId: this.message.activationId, error: error.message },
      'no container could be provided',
    );
    const time = new Date(this.context.clock.now()).toISOString().padEnd(30);
    this.failNow(
      error.byAction ? developerError(error.told) : whiskError(error.told),
      error.message.split('\n').map((line) => `${time} stderr: ${line}`),
    );
  }

  private noteLoad({ id }: Container, ms: number): void {
    if (this.gpuUser !== undefined) this.context.gpu?.loaded(id, ms);
  }

  /** The outcome of a call; `lost` if another function's fault on the GPU has failed it. */
  private async ownOutcome({ id }: Container, outcome: CallOutcome): Promise<CallOutcome> {
    const { gpu } = this.context;
    if (gpu === undefined || this.gpuUser === undefined || !mayHaveFailed(outcome)) return outcome;
    return (await gpu.isInnocent(id)) ? { type: 'lost', oomKilled: false } : outcome;
  }

  /** The response of a run whose container the GPU agent ended; undefined if the agent did not end the container. */
  private endedByAgent({ id }: Container, outcome: CallOutcome): ActivationResponse | undefined {
    const ending = outcome.type === 'lost' ? this.context.gpu?.endingOf(id) : undefined;
    if (ending === undefined) return undefined;
    return ending.byAction ? developerError(ending.text) : whiskError(ending.text);
  }

  /** Returns a preempted batch of an idempotent action to its controller; false if the batch was not preempted. */
  private runsAgain({ id }: Container, outcome: CallOutcome, all: readonly Prepared[]): boolean {
    const ending = outcome.type === 'lost' ? this.context.gpu?.endingOf(id) : undefined;
    // A training job decides itself about its next run.
    if (this.message.training !== undefined) return false;
    if (ending?.again !== true || parameterValue(this.action.annotations, 'idempotent') !== true) return false;
    for (const { run } of all) run.giveBack(ending.text);
    return true;
  }

  /**
   * Whether the requests of a batch run again one by one: if all have failed, so that one of them may have failed the others, and
   * the action may be repeated.
   */
  private splits(outcomes: readonly CallOutcome[]): boolean {
    const isIdempotent = parameterValue(this.action.annotations, 'idempotent') === true;
    return outcomes.length > 1 && isIdempotent && outcomes.every(isFailure);
  }

  private giveBack(reason: string): void {
    this.trace?.gaveBack(reason);
    this.end.giveBack(reason);
  }

  private runAlone(): void {
    this.runsAlone = true;
    this.trace?.waiting();
    const { activationId } = this.message;
    this.context.logger.info(
      { activationId, action: fullyQualifiedName(this.action) },
      'its batch failed: it runs alone',
    );
    // Its first run is over for the GPU agent by then.
    this.context.clock.defer(() => this.end.retry(this));
  }

  /** Keeps a container that can be unloaded. A run that the runtime has yet to end must not hold a GPU that others get. */
  private afterFailure(container: Container, outcome: CallOutcome): Disposition {
    const isEnded = outcome.type === 'timeout' && container.endsLate && this.gpuUser === undefined;
    return outcome.type === 'error' || isEnded ? 'recover' : 'discard';
  }

  /** Whether the invoker's shutdown ended the run: the next process decides about the activation by its start mark. */
  private cutShort(outcome: CallOutcome): boolean {
    return outcome.type === 'lost' && this.context.isClosing();
  }

  retryElsewhere(): void {
    this.tries++;
    if (this.tries >= maxTries) this.failNow(whiskError('Failed to provision resources to run the action.'));
    else {
      this.trace?.waiting();
      this.end.retry(this);
    }
  }

  /** Ends an activation that never reached its code. */
  private failNow(response: ActivationResponse, logs: string[] = []): void {
    const start = momentOf(this.context.clock);
    void this.finish({ start, load: undefined, response, timedOut: false, logs: Promise.resolve(logs) });
  }

  private finish(ended: Ended): Promise<void> {
    const { load, response } = ended;
    this.trace?.ended(response.statusCode, load && ('start' in load ? load.start : load.found));
    return endActivation(this.context, this.message, this.action, ended, () => this.end.stored());
  }

  /**
   * The init request, or undefined if the code cannot be read. `untilMs`: deadline of the run that loads the code, epoch ms.
   */
  private async initRequest(
    content: ActivationMessage['content'],
    { canUnload }: Container,
    untilMs: number | undefined,
  ): Promise<InitRequest | undefined> {
    const { action, message, context } = this;
    let large: LargeCode | undefined;
    try {
      const { digest, ...code } = await action.code(message.user.namespace.name);
      ({ large } = code);
      const checked = canUnload && digest !== undefined ? { ...code, digest } : code;
      return initRequest(action, checked, message, content, untilMs);
    } catch (error) {
      large?.passed();
      context.logger.error({ action: fullyQualifiedName(action), error: String(error) }, 'code could not be read');
      return undefined;
    }
  }
}

function retryElsewhere(all: readonly Prepared[]): Disposition {
  for (const { run } of all) run.retryElsewhere();
  return 'discard';
}
