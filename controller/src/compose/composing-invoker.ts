import { TopicFullError } from '@gpuwhisk/common/bus/message-bus';
import type { WhiskActivation, ActivationResponse } from '@gpuwhisk/common/entities/activation';
import { ActivationStatus, activationStatusWords } from '@gpuwhisk/common/entities/activation';
import { settingNamed } from '@gpuwhisk/common/entities/limits';
import { isApiError, noSuchEntity, overloaded, queueFull, storeFull, tooManyInFlight } from '@gpuwhisk/common/errors';
import type { ApiError } from '@gpuwhisk/common/errors';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Receipt } from '@gpuwhisk/common/bus/message-bus';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { isSequence } from '@gpuwhisk/common/entities/exec-codec';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { newActivationId } from '@gpuwhisk/common/ids';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Metrics } from '@gpuwhisk/common/metrics';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import type { Span, Tracer } from '@gpuwhisk/common/tracing';
import { readTraceContext } from '@gpuwhisk/common/tracing';
import type { UserEvents } from '@gpuwhisk/common/user-events';
import type { ActionResolver, ResolvedAction } from '../actions/action-resolver.js';
import { isComposite, whiskError, ComponentTally, isConductor, compositeRecord } from './composite.js';
import { CompositeJournal } from './composite-journal.js';
import type { JournalDependencies } from './composite-journal.js';
import type { InvokeOutcome, InvokeRequest, InvokeService } from '../invoke/invoke-service.js';
import { parseActionName } from '../entities/action-name.js';
import { activationMessage, bareArguments } from '../invoke/activation-message.js';
import type { InheritedCounts, ComponentInvoker } from './composite.js';
import { compositionFailed, runComposition } from './conductor.js';
import { findComponents, inNamespace, runSequence, sequenceFailed } from './sequence.js';
import type { FoundComponent, Resolver } from './sequence.js';

/** Dependencies of ComposingInvoker. */
export interface ComposingDependencies extends JournalDependencies, RunnerDependencies {
  resolver: Pick<ActionResolver, 'resolve' | 'checkUsable'>;
  /** Most sequences and compositions at once. More are refused, as they are while too many records wait for the store. */
  maxAtOnce: number;
}

/**
 * Invokes actions, sequences and compositions. `primitive` runs actions; the components of sequences and compositions run
 * one by one. Each accepted invocation ends with one record, even after a crash.
 */
export class ComposingInvoker implements InvokeService {
  private readonly journal: CompositeJournal;
  private readonly runner: CompositeRunner;
  /** Callbacks of waiting callers; a call answers the caller without a result. */
  private readonly waiters = new Set<() => void>();
  private closing = false;

  constructor(private readonly dependencies: ComposingDependencies) {
    this.journal = new CompositeJournal(dependencies, (message, begun) => void this.recover(message, begun));
    this.runner = new CompositeRunner(dependencies, this.journal);
  }

  /** Recovers the compositions that an earlier process accepted and did not end. */
  open(): Promise<void> {
    return this.journal.open();
  }

  /** Waits up to `drainMs` for running compositions; the next process start records longer ones as stopped. */
  async close(drainMs: number): Promise<void> {
    const { clock } = this.dependencies;
    this.closing = true;
    await this.journal.stopTaking();
    const untilMs = clock.monotonicMs() + drainMs;
    while (this.runner.running > 0 && clock.monotonicMs() < untilMs) await sleep(clock, 20);
    this.runner.stop();
    for (const giveUp of [...this.waiters]) giveUp();
    await this.journal.close();
  }

  invoke(request: InvokeRequest): Promise<InvokeOutcome> {
    return isComposite(request.action) ? this.invokeComposite(request) : this.dependencies.primitive.invoke(request);
  }

  private async invokeComposite(request: InvokeRequest): Promise<InvokeOutcome> {
    const { runner } = this;
    const { maxAtOnce, resolver } = this.dependencies;
    const components = runner.findComponents(request.identity, request.action);
    const names = components.map(({ name }) => parseActionName(name));
    await resolver.checkUsable(
      request.identity,
      names.filter((name) => name !== undefined),
    );
    if (this.closing || this.journal.isFull) throw overloaded();
    if (request.cause === undefined && this.journal.storeIsFull) throw storeFull();
    if (runner.running >= maxAtOnce) throw tooManyInFlight(runner.running, maxAtOnce, settingNamed('maxCompositions'));
    let run: CompositeRun;
    try {
      run = runner.start(request, components);
    } catch (error) {
      throw this.refusal(error);
    }
    const activation = request.blocking ? await this.within(request.waitMs, run.ended) : undefined;
    if (activation !== undefined) return { type: 'completed', activation };
    try {
      await run.receipt.synced();
    } catch (error) {
      throw this.refusal(error);
    }
    return { type: 'accepted', activationId: run.activationId };
  }

  private refusal(error: unknown): ApiError {
    if (error instanceof TopicFullError) return queueFull(error);
    this.dependencies.logger.error({ error: String(error) }, 'a sequence could not be accepted');
    return overloaded();
  }

  /** The result of `ended`, or undefined after `waitMs` or when the controller stops. */
  private within(waitMs: number, ended: Promise<WhiskActivation>): Promise<WhiskActivation | undefined> {
    return new Promise((resolve) => {
      const settle = (activation?: WhiskActivation): void => {
        timer.cancel();
        this.waiters.delete(settle);
        resolve(activation);
      };
      const timer = this.dependencies.clock.setTimer(waitMs, settle);
      this.waiters.add(settle);
      void ended.then(settle);
    });
  }

  /** Ends or runs a composition that an earlier process accepted and that has no record. */
  private async recover(message: ActivationMessage, begun: boolean): Promise<void> {
    const found = await this.find(message);
    const action = 'action' in found ? found.action : undefined;
    if (begun) {
      await this.runner.recordUnrun(message, action, whiskError('The controller stopped while the sequence ran.'));
    } else if ('failure' in found) {
      await this.runner.recordUnrun(message, undefined, whiskError(found.failure));
    } else if (!this.closing) this.runner.resume(message, found);
  }

  /** The action that a message names, or the reason in OpenWhisk's words why the action cannot run. */
  private async find({ action, revision, user }: ActivationMessage): Promise<ResolvedAction | { failure: string }> {
    const name = parseActionName(`${action.binding ?? action.path}/${action.name}`);
    try {
      if (name === undefined) throw noSuchEntity();
      const found = await this.dependencies.resolver.resolve(user, name);
      if (found.action.revision === revision && isComposite(found.action)) return found;
      return { failure: 'Action version is not compatible and cannot be invoked.' };
    } catch (error) {
      this.dependencies.logger.warn({ action: action.name, error: String(error) }, 'a sequence could not be read');
      const missing = isApiError(error) && error.status === 404;
      return {
        failure: missing ? 'Action could not be found or may have been deleted.' : 'Action could not be fetched.',
      };
    }
  }
}

/** Dependencies of CompositeRunner. */
interface RunnerDependencies {
  /** Runs actions that have code. */
  primitive: InvokeService;
  resolver: Resolver;
  clock: Clock;
  random: Random;
  metrics: Metrics;
  logger: Logger;
  /** Absent: no events are sent. */
  userEvents?: UserEvents;
  /** Absent: nothing is traced. */
  tracer?: Tracer;
  /** This controller's number. */
  instance: number;
  /** Most actions of a sequence, or components of a composition. */
  maxLength: number;
}

/** How long a component is waited for beyond its time limit, ms. */
const componentGraceMs = 60_000;
/** Most activations of one invocation, including those of nested sequences and compositions. */
const maxActivations = 10_000;
/** Delay of new records in the store up to which callers are answered before their record is stored, ms. */
const longestLagMs = 30;

/** A running sequence or composition. */
interface CompositeRun {
  activationId: string;
  receipt: Receipt;
  /** Resolves with the record as soon as the caller may get it; never rejects. */
  ended: Promise<WhiskActivation>;
}

/** The sequences and compositions around a nested one, and their counts. */
interface Nesting {
  counts: InheritedCounts;
  /** Activations of one caller's invocation so far, shared by all nested sequences and compositions. */
  allowance: { activations: number };
  /** Number of enclosing sequences and compositions. */
  depth: number;
}

const topmost = (): Nesting => ({ counts: {}, allowance: { activations: 0 }, depth: 0 });

/** Runs sequences and compositions: invokes their components one by one and records them. */
class CompositeRunner {
  private atWork = 0;
  private stopped = false;

  constructor(
    private readonly dependencies: RunnerDependencies,
    private readonly journal: CompositeJournal,
  ) {}

  /** Sequences and compositions that have not ended, nested ones included. */
  get running(): number {
    return this.atWork;
  }

  /** Stops all invocations and records; the next process start decides about running compositions. */
  stop(): void {
    this.stopped = true;
  }

  /** Looks up the components of a sequence; empty for a conductor. */
  findComponents(identity: Identity, { exec }: WhiskAction): FoundComponent[] {
    if (!isSequence(exec)) return [];
    return findComponents(this.dependencies.resolver, identity, inNamespace(exec.components, identity.namespace.name));
  }

  /** Accepts a sequence or composition and runs it. Throws TopicFullError, or another Error if the log has failed. */
  start(request: InvokeRequest, components: readonly FoundComponent[], within: Nesting = topmost()): CompositeRun {
    const { clock, random, instance, tracer } = this.dependencies;
    const nowMs = clock.now();
    const activationId = newActivationId(nowMs, random);
    const span = tracer && compositeSpan(tracer, request, activationId);
    const traced = span === undefined ? request : { ...request, trace: span.context };
    const message = activationMessage(traced, bareArguments(request.payload), { activationId, instance, nowMs });
    let receipt: Receipt;
    try {
      receipt = this.journal.send(message);
    } catch (error) {
      span?.end((error as Error).message);
      throw error;
    }
    const ended = this.run(message, request, components, within);
    if (span !== undefined) void ended.then(({ response }) => span.end(failureOf(response)));
    return { activationId, receipt, ended };
  }

  /** Runs a composition that an earlier process accepted and did not begin. */
  resume(message: ActivationMessage, resolved: ResolvedAction): void {
    const components = this.findComponents(message.user, resolved.action);
    void this.run(message, resolved, components, topmost());
  }

  /** Records a composition that is not run. */
  async recordUnrun(
    message: ActivationMessage,
    action: WhiskAction | undefined,
    response: ActivationResponse,
  ): Promise<void> {
    const nowMs = this.dependencies.clock.now();
    const tally = new ComponentTally(undefined);
    await this.journal.record(message, compositeRecord(message, action, tally, nowMs, nowMs, response));
  }

  private async run(
    message: ActivationMessage,
    resolved: ResolvedAction,
    components: readonly FoundComponent[],
    within: Nesting,
  ): Promise<WhiskActivation> {
    const { clock, metrics, logger } = this.dependencies;
    const { action } = resolved;
    this.atWork++;
    const startMs = clock.now();
    const beganMs = clock.monotonicMs();
    const tally = new ComponentTally(isConductor(action) ? action.limits.memory : undefined);
    let response: ActivationResponse;
    try {
      await this.noteBegin(message);
      response = await this.respond(message, resolved, components, tally, within);
    } catch (error) {
      // The log rejected the start mark, so that nothing was invoked.
      logger.error({ activationId: message.activationId, error: String(error) }, 'a sequence could not begin');
      response = isConductor(action) ? compositionFailed() : sequenceFailed();
    }
    // The end is measured by the monotonic clock: a step of the wall clock must not put it before the start.
    const endMs = startMs + Math.round(clock.monotonicMs() - beganMs);
    const record = compositeRecord(message, action, tally, startMs, endMs, response);
    this.atWork--;
    if (this.stopped) return record;
    const { namespace, name, limits } = action;
    const times = { startMs, endMs: startMs + tally.durationMs, waitMs: Math.max(0, startMs - message.transid[1]) };
    const ended = {
      namespace,
      name,
      kind: 'sequence',
      limits: { ...limits, memory: tally.memoryMiB ?? limits.memory },
    };
    metrics.activationEnded(ended, times, response, message.user.namespace.name);
    this.dependencies.userEvents?.activation(record, message.user);
    // The answer may precede the record by 50 ms. If the store lags more, the answer waits for the record.
    const answersFirst = this.journal.lagMs < longestLagMs;
    const stored = this.journal.record(message, record);
    if (!answersFirst) await stored;
    return record;
  }

  /** Marks the start of a composition. A nested one needs no mark, as the outermost one has a mark. */
  private async noteBegin({ activationId, blocking, cause }: ActivationMessage): Promise<void> {
    if (cause !== undefined) return;
    const noted = this.journal.begin(activationId);
    if (!blocking) await noted();
  }

  private respond(
    message: ActivationMessage,
    resolved: ResolvedAction,
    components: readonly FoundComponent[],
    tally: ComponentTally,
    within: Nesting,
  ): Promise<ActivationResponse> {
    const { counts } = within;
    const stage = this.stageFor(message, within);
    const payload = message.content ?? {};
    if (isSequence(resolved.action.exec)) {
      return runSequence(stage, components, payload, tally, counts.sequence ?? { actions: 0 });
    }
    const { resolver } = this.dependencies;
    const count = counts.composition ?? { components: 0, conductors: 0 };
    return runComposition(stage, resolver, message.user, resolved, payload, tally, count);
  }

  private stageFor(message: ActivationMessage, { allowance, depth }: Nesting): ComponentInvoker {
    const { maxLength, primitive } = this.dependencies;
    const requestFor = (component: ResolvedAction, payload: InvokeRequest['payload']): InvokeRequest => {
      if (this.stopped) throw new Error('the controller stops');
      allowance.activations++;
      return {
        ...component,
        identity: message.user,
        payload,
        blocking: true,
        waitMs: component.action.limits.timeout + componentGraceMs,
        transactionId: message.transid[0],
        extraLogging: message.transid[2] === true,
        cause: message.activationId,
        trace: readTraceContext(message.traceContext),
      };
    };
    return {
      maxLength,
      get exhausted() {
        return allowance.activations >= maxActivations || depth > 2 * maxLength;
      },
      invokeCode: async (action, payload) => primitive.invoke(requestFor(action, payload)),
      invoke: async (component, payload, counts): Promise<InvokeOutcome> => {
        const request = requestFor(component, payload);
        if (!isComposite(component.action)) return primitive.invoke(request);
        const components = this.findComponents(message.user, component.action);
        const { ended } = this.start(request, components, { counts, allowance, depth: depth + 1 });
        return { type: 'completed', activation: await ended };
      },
    };
  }
}

function compositeSpan(tracer: Tracer, { trace, action }: InvokeRequest, activationId: string): Span {
  const attributes = { 'faas.name': `/${action.namespace}/${action.name}`, 'faas.invocation_id': activationId };
  return tracer.start(isConductor(action) ? 'composition' : 'sequence', { parent: trace, attributes });
}

function failureOf({ statusCode }: ActivationResponse): string | undefined {
  return statusCode === ActivationStatus.success ? undefined : activationStatusWords[statusCode];
}
