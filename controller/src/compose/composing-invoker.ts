import { TopicFullError } from '@gpuwhisk/common/bus/message-bus';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { isApiError, noSuchEntity, overloaded, tooManyInFlight } from '@gpuwhisk/common/errors';
import type { ApiError } from '@gpuwhisk/common/errors';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { ActionResolver, ResolvedAction } from '../actions/action-resolver.js';
import { isComposite, whiskError } from './composite.js';
import { CompositeJournal } from './composite-journal.js';
import type { JournalDependencies } from './composite-journal.js';
import { CompositeRunner } from './composite-runner.js';
import type { CompositeRun, RunnerDependencies } from './composite-runner.js';
import type { InvokeOutcome, InvokeRequest, InvokeService } from '../invoke/invoke-service.js';
import { parseActionName } from '../entities/action-name.js';

/** Dependencies of ComposingInvoker. */
export interface ComposingDependencies extends JournalDependencies, RunnerDependencies {
  resolver: Pick<ActionResolver, 'resolve' | 'checkUsable'>;
  /** Sequences and compositions that run at once, at most; more are refused, as while too many records wait for the store. */
  maxAtOnce: number;
}

/**
 * Invokes actions of every sort: primitive ones as `primitive` does, sequences and compositions by running their
 * components one by one. What it accepted ends with one record, whatever dies in between.
 */
export class ComposingInvoker implements InvokeService {
  private readonly journal: CompositeJournal;
  private readonly runner: CompositeRunner;
  /** Callers that wait; called, they are told that there is no result yet. */
  private readonly waiters = new Set<() => void>();
  private closing = false;

  constructor(private readonly dependencies: ComposingDependencies) {
    this.journal = new CompositeJournal(dependencies, (message, begun) => void this.recover(message, begun));
    this.runner = new CompositeRunner(dependencies, this.journal);
  }

  /** Takes up the compositions that an earlier process accepted and did not end. */
  open(): Promise<void> {
    return this.journal.open();
  }

  /** Waits up to `drainMs` for what runs; the next process start records longer ones as stopped. */
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
    if (runner.running >= maxAtOnce) throw tooManyInFlight(runner.running, maxAtOnce);
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
    if (error instanceof TopicFullError) return tooManyInFlight(error.pending, error.allowed);
    this.dependencies.logger.error({ error: String(error) }, 'a sequence could not be accepted');
    return overloaded();
  }

  /** The result of `ended`, or undefined after `waitMs` or where the controller stops. */
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

  /** The action that a message names, or why it cannot be run, in OpenWhisk's words. */
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
