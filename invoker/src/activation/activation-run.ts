import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { ActivationResponse } from '@gpuwhisk/common/entities/activation';
import { resultBoundsFor } from '@gpuwhisk/common/entities/limits';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type {
  CallLimits,
  ContainerSpec,
  InitRequest,
  Outcome,
  ProvisioningError,
  RunRequest,
} from '../containers/container-factory.js';
import type { PoolJob } from '../pool/action-queue.js';
import type { Disposition, LoadingStart, PoolMember } from '../pool/pool-member.js';
import { activationRecord } from './activation-record.js';
import { acknowledgeResult, complete } from './completion.js';
import type { InvokerContext } from './invoker-context.js';
import { developerError, developerErrorLogLine, initResponse, runResponse, whiskError } from './outcome-response.js';
import { fullyQualifiedName } from './runnable-action.js';
import type { RunnableAction } from './runnable-action.js';

const MiB = 1024 * 1024;
/** Containers that may turn a run away as shutting down before the activation fails. */
const maxTries = 3;

/** A point in time on both clocks. */
interface Moment {
  epochMs: number;
  monotonicMs: number;
}

/** A record is stored at most about this long after those that wait already, ms. */
const longestLagMs = 30;

/** Code was loaded: how long that took, ms, and into what. */
interface Load {
  initMs: number;
  start: LoadingStart;
}

/** What ends with the activation. */
export interface RunEnd {
  /** The record is durable: the message is needed no more. */
  stored(): void;
  /** A container turned the run away: find it another. */
  retry(job: PoolJob): void;
}

/** One activation on its way through the pool: init if needed, run, acknowledge, record. */
export class ActivationRun implements PoolJob {
  readonly key: string;
  readonly spec: ContainerSpec;
  private tries = 0;

  constructor(
    private readonly context: InvokerContext,
    private readonly message: ActivationMessage,
    private readonly action: RunnableAction,
    private readonly end: RunEnd,
  ) {
    const { action: reference, initArgs, revision, user } = message;
    // What a container got at its initialization may differ from binding to binding.
    const binding = initArgs.length > 0 ? (reference.binding ?? '') : '';
    this.key = `${user.namespace.name} ${reference.path}/${reference.name} ${revision} ${binding}`;
    this.spec = {
      kind: action.runtime,
      memoryMiB: action.limits.memory,
      concurrency: action.limits.concurrency,
      requirements: action.requirements,
      imports: action.warm.imports,
      cuda: action.warm.cuda,
    };
  }

  get readiesAhead(): boolean {
    return this.action.warm.entry !== undefined;
  }

  async ready({ container }: PoolMember): Promise<boolean> {
    let init: InitRequest | undefined;
    try {
      init = await this.initRequest(this.context.unlockArguments(this.message.content, this.message.lockedArgs));
    } catch {
      return false; // As its own run will say, or has said.
    }
    if (init === undefined) return false;
    const outcome = await container.init(init, this.limits()).outcome;
    return outcome.type === 'ok';
  }

  async run(member: PoolMember, onInitialized: () => void): Promise<Disposition> {
    const { clock, marks } = this.context;
    const { container } = member;
    const warm = member.initialized;
    const found = warm && !member.used ? 'prewarmed' : 'warm';
    member.used = true;
    try {
      const markSynced = marks.mark(this.message.activationId);
      if (!this.message.blocking) await markSynced();
    } catch (error) {
      this.context.logger.error({ error: String(error) }, 'a start mark could not be written');
      this.failNow(whiskError('Failed to provision resources to run the action.'));
      return 'keep';
    }
    let content: ActivationMessage['content'];
    try {
      content = this.context.unlockArguments(this.message.content, this.message.lockedArgs);
    } catch (error) {
      this.failNow(whiskError((error as Error).message));
      return 'keep';
    }
    const init = warm ? undefined : await this.initRequest(content);
    if (!warm && init === undefined) {
      this.failNow(whiskError('Action could not be fetched.'));
      return 'discard';
    }
    // What came before is the activation's wait; what follows is its duration, which its time limits bound.
    const start = this.moment();
    const limits = this.limits();
    let load: Load | undefined;
    if (init !== undefined) {
      const beganMs = clock.monotonicMs();
      const call = container.init(init, limits);
      const outcome = await call.outcome;
      load = { initMs: Math.round(clock.monotonicMs() - beganMs), start: member.origin };
      if (outcome.type === 'unavailable') return this.retryElsewhere();
      if (this.cutShort(outcome)) return 'discard';
      if (outcome.type !== 'ok') {
        const response = initResponse(outcome, this.action.limits.timeout);
        await this.finish(start, load, response, outcome.type === 'timeout', call.logs);
        return 'discard';
      }
      member.initialized = true;
      onInitialized();
    }
    const call = container.run(this.runRequest(content), limits);
    const outcome = await call.outcome;
    if (outcome.type === 'unavailable') return this.retryElsewhere();
    if (this.cutShort(outcome)) return 'discard';
    const response = runResponse(outcome, this.action.limits.timeout, limits.maxResultBytes);
    this.context.metrics.activationStarted(this.action.kind, load?.start ?? found);
    await this.finish(start, load, response, outcome.type === 'timeout', call.logs);
    return response.statusCode <= ActivationStatus.applicationError ? 'keep' : 'discard';
  }

  fail(error: ProvisioningError): void {
    this.context.logger.warn(
      { action: fullyQualifiedName(this.action), activationId: this.message.activationId, error: error.message },
      'no container could be provided',
    );
    this.failNow(error.byAction ? developerError(error.told) : whiskError(error.told), [
      `${new Date(this.context.clock.now()).toISOString().padEnd(30)} stderr: ${error.message}`,
    ]);
  }

  private moment(): Moment {
    const { clock } = this.context;
    return { epochMs: clock.now(), monotonicMs: clock.monotonicMs() };
  }

  /** Whether the invoker's own end ended the run: the next life decides about it by its start mark. */
  private cutShort(outcome: Outcome): boolean {
    return outcome.type === 'lost' && this.context.isClosing();
  }

  private retryElsewhere(): Disposition {
    this.tries++;
    if (this.tries >= maxTries) this.failNow(whiskError('Failed to provision resources to run the action.'));
    else this.end.retry(this);
    return 'discard';
  }

  /** Ends an activation that never reached its code. */
  private failNow(response: ActivationResponse, logs: string[] = []): void {
    void this.finish(this.moment(), undefined, response, false, Promise.resolve(logs));
  }

  private async finish(
    start: Moment,
    load: Load | undefined,
    response: ActivationResponse,
    timedOut: boolean,
    logs: Promise<string[]>,
  ): Promise<void> {
    const { context, message } = this;
    const [, acceptedMs] = message.transid;
    const startMs = start.epochMs;
    // By the monotonic clock, so that a step of the wall clock makes no run longer or end before it began.
    const endMs = startMs + Math.round(context.clock.monotonicMs() - start.monotonicMs);
    const times = { startMs, endMs, waitMs: Math.max(0, startMs - acceptedMs), ...load };
    const record = activationRecord(message, { ...this.action }, times, response, timedOut);
    // The answer may be ahead of the record by 50 ms; where the store lags behind, it waits for the record.
    const answersFirst = context.records.lagMs < longestLagMs;
    if (message.blocking && answersFirst) acknowledgeResult(context, message, record);
    const lines = await logs;
    if (response.statusCode === ActivationStatus.developerError && this.action.limits.logs > 0) {
      lines.push(`${new Date(context.clock.now()).toISOString().padEnd(30)} stderr: ${developerErrorLogLine}`);
    }
    context.metrics.activationEnded(this.action, times, response.statusCode, message.user.namespace.name);
    complete(context, message, lines.length === 0 ? record : { ...record, logs: lines }, () => {
      if (message.blocking && !answersFirst) acknowledgeResult(context, message, record);
      this.end.stored();
    });
  }

  private limits(): CallLimits {
    const { timeout, logs } = this.action.limits;
    const results = resultBoundsFor(this.context.resultBounds, this.message.user.limits);
    return { timeoutMs: timeout, logLimitBytes: logs * MiB, ...results };
  }

  private get apiKey(): string | undefined {
    const provide = parameterValue(this.action.annotations, 'provide-api-key');
    const withheld = provide === false || provide === 0 || provide === '' || provide === null;
    return withheld ? undefined : this.message.user.authkey.api_key;
  }

  private async initRequest(content: ActivationMessage['content']): Promise<InitRequest | undefined> {
    const { action, message, context } = this;
    let code;
    try {
      code = await action.code();
    } catch (error) {
      context.logger.error({ action: fullyQualifiedName(action), error: String(error) }, 'code could not be read');
      return undefined;
    }
    const args = isJsonObject(content) ? content : {};
    const env: Record<string, string> = {};
    for (const key of message.initArgs) env[key] = environmentText(args[key] ?? null);
    env.__OW_NAMESPACE = message.user.namespace.name;
    env.__OW_ACTION_NAME = fullyQualifiedName(action);
    env.__OW_ACTION_VERSION = action.version;
    env.__OW_ACTIVATION_ID = message.activationId;
    env.__OW_TRANSACTION_ID = message.transid[0];
    env.__OW_DEADLINE = String(context.clock.now() + action.limits.timeout);
    const { apiKey } = this;
    if (apiKey !== undefined) env.__OW_API_KEY = apiKey;
    const { entry } = action.warm;
    return {
      name: action.name,
      main: action.main,
      code: code.code,
      binary: code.binary,
      ...(entry !== undefined && { entry }),
      env,
    };
  }

  private runRequest(content: ActivationMessage['content']): RunRequest {
    const { action, message, context, apiKey } = this;
    const request: RunRequest = {
      value: this.runArguments(content),
      namespace: message.user.namespace.name,
      action_name: fullyQualifiedName(action),
      action_version: action.version,
      activation_id: message.activationId,
      transaction_id: message.transid[0],
      deadline: String(context.clock.now() + action.limits.timeout),
    };
    if (apiKey !== undefined) request.api_key = apiKey;
    return request;
  }

  private runArguments(content: ActivationMessage['content']): JsonObject | JsonValue[] {
    const { initArgs } = this.message;
    if (Array.isArray(content)) return content;
    if (content === undefined) return {};
    if (initArgs.length === 0) return content;
    const value: JsonObject = { ...content };
    for (const key of initArgs) delete value[key];
    return value;
  }
}

/** Init parameters reach the environment as they are if strings, empty if null, else as JSON. */
function environmentText(value: JsonValue): string {
  if (value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
