import { overloaded, isApiError, internalError, storeFull, tooLarge } from '@gpuwhisk/common/errors';
import { isRecordKept } from '@gpuwhisk/common/activations/record-policy';
import type { RecordLevels } from '@gpuwhisk/common/activations/record-policy';
import type { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { ActivationStatus, activationDocument } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation, ActivationStatusCode } from '@gpuwhisk/common/entities/activation';
import type { ByteBound } from '@gpuwhisk/common/entities/limits';
import type { EntityReference } from '@gpuwhisk/common/entities/names';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import type { RuleLink, WhiskTrigger } from '@gpuwhisk/common/entities/trigger';
import { newActivationId } from '@gpuwhisk/common/ids';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import { transactionLogger } from '@gpuwhisk/common/logging';
import { othersFirst } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { TraceContext } from '@gpuwhisk/common/tracing';
import type { Random } from '@gpuwhisk/common/system/random';
import { referenceId } from '@gpuwhisk/common/entities/names';
import { parametersToObject } from '@gpuwhisk/common/entities/parameters';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import type { ActionResolver } from '../actions/action-resolver.js';
import type { Throttles } from '../entitlement/throttles.js';
import type { InvokeService } from '../invoke/invoke-service.js';
import { checkInvocable } from '../http/invocation.js';
import { actionNameOf } from '../entities/action-name.js';

/** One fire of a trigger that passed authentication and validation. */
interface Fire {
  identity: Identity;
  trigger: WhiskTrigger;
  payload: JsonObject;
  /** Headers of the request, in lower case. */
  headers: JsonObject;
  transactionId: string;
  /** Whether the caller sent X-OW-EXTRA-LOGGING. */
  extraLogging: boolean;
  /** Most bytes of one action's arguments. */
  maxPayload: ByteBound;
  /** The span of the request; absent: it is not traced. */
  trace?: TraceContext | undefined;
}

/** Whose activations a fire posts, and as part of which request. */
type Poster = Pick<Fire, 'identity' | 'transactionId' | 'trace'>;

/** Dependencies of TriggerFires. */
interface TriggerFiresDependencies {
  clock: Clock;
  random: Random;
  logger: Logger;
  records: RecordWriter;
  /** Which records are stored. */
  recordLevels: RecordLevels;
  /** Posts an action and resolves with its activation's id. Throws ApiError. */
  post: (fire: Poster, action: EntityReference, args: JsonObject) => Promise<string>;
}

/** Most rules of one fire whose actions are posted at once. One group commit syncs them all; more rules wait. */
const maxRulesAtOnce = 1000;
/** How long a fire waits for its record, ms: slightly less than OpenWhisk's limit on a request. */
const recordWaitMs = 60_000;

/** Fires triggers: posts the actions of active rules and records the results. */
export class TriggerFires {
  constructor(private readonly dependencies: TriggerFiresDependencies) {}

  /**
   * Fires a trigger. Resolves with the activation's id when the rules' activations are accepted and the record is stored.
   * Without an active rule nothing is done, and the result is undefined. Throws ApiError (503).
   */
  async fire(fire: Fire): Promise<string | undefined> {
    const { clock, random, records } = this.dependencies;
    const { identity, trigger, payload } = fire;
    const rules = [...(trigger.rules ?? [])];
    if (!rules.some(([, link]) => link.status === 'active')) return undefined;
    if (records.isFull) throw overloaded();
    if (records.storeIsFull) throw storeFull();
    const startMs = clock.now();
    const activationId = newActivationId(startMs, random);
    const logs = await this.runRules(fire, rules);
    const call = { blocking: false, extraLogging: fire.extraLogging, limits: identity.limits };
    if (isRecordKept(this.dependencies.recordLevels, call, ActivationStatus.success)) {
      await this.store({
        namespace: identity.namespace.name,
        name: trigger.name,
        version: trigger.version,
        subject: identity.subject,
        activationId,
        start: startMs,
        end: 0,
        response: { statusCode: ActivationStatus.success, result: payload },
        logs,
        publish: false,
        annotations: [],
      });
    }
    return activationId;
  }

  /** Resolves with the lines of the trigger's logs, in the order of its rules. */
  private async runRules(fire: Fire, rules: readonly [string, RuleLink][]): Promise<string[]> {
    const { trigger, headers, payload, identity, maxPayload } = fire;
    const argumentsOf = ruleArguments(trigger, headers, payload, identity, maxPayload);
    const lines: string[] = [];
    for (let first = 0; first < rules.length; first += maxRulesAtOnce) {
      if (first > 0) await othersFirst(this.dependencies.clock);
      const together = rules.slice(first, first + maxRulesAtOnce).map(async ([rule, link]) => {
        const result =
          link.status === 'active' ? await this.runRule(fire, link, argumentsOf) : inactiveResult(rule, link);
        return resultLine(rule, link, result);
      });
      lines.push(...(await Promise.all(together)));
    }
    return lines;
  }

  private async runRule(fire: Fire, { action }: RuleLink, argumentsOf: ArgumentsOf): Promise<RuleResult> {
    const { post, logger } = this.dependencies;
    try {
      return { activationId: await post(fire, action, argumentsOf(action)) };
    } catch (error) {
      if (!isApiError(error)) {
        transactionLogger(logger, fire.transactionId, false).error(
          { err: error },
          "a rule's action could not be posted",
        );
      }
      return failedResult(error);
    }
  }

  /** Stores the record. Throws ApiError (503) if the store takes too long. */
  private store(activation: WhiskActivation): Promise<void> {
    const { clock, records } = this.dependencies;
    return new Promise((resolve, reject) => {
      const timer = clock.setTimer(recordWaitMs, () => reject(overloaded()));
      records.add(activationDocument(activation, clock.now()), () => {
        timer.cancel();
        resolve();
      });
    });
  }
}

/** The result of one rule of a fire, as a line of the trigger's logs. */
type RuleResult = { activationId: string } | { statusCode: ActivationStatusCode; error: string };

/** A rule's line in the logs of the trigger's record. */
function resultLine(rule: string, { action }: RuleLink, result: RuleResult): string {
  const target = { rule, action: referenceId(action) };
  if ('activationId' in result) {
    const { activationId } = result;
    return JSON.stringify({ statusCode: ActivationStatus.success, success: true, activationId, ...target });
  }
  const { statusCode, error } = result;
  return JSON.stringify({ statusCode, success: false, error, ...target });
}

/** The result of an inactive rule. */
function inactiveResult(rule: string, { action }: RuleLink): RuleResult {
  const error = `Rule '${rule}' is inactive, action '${referenceId(action)}' was not activated.`;
  return { statusCode: ActivationStatus.applicationError, error };
}

/** The result of a rule whose action was not accepted; the error is internal only if the platform failed. */
function failedResult(error: unknown): RuleResult {
  const { status, message } = isApiError(error) ? error : internalError();
  const isOurs = status >= 500;
  return { statusCode: isOurs ? ActivationStatus.whiskError : ActivationStatus.applicationError, error: message };
}

/** Makes the arguments of a rule's action. Throws ApiError (413) if they are too large. */
type ArgumentsOf = (action: EntityReference) => JsonObject;

/**
 * The trigger's parameters, then `__ow_headers`, then the payload; later ones take precedence. Only actions of the firing
 * user's namespace get the Authorization header, as code of other namespaces must not learn the key.
 */
function ruleArguments(
  trigger: WhiskTrigger,
  headers: JsonObject,
  payload: JsonObject,
  identity: Identity,
  most: ByteBound,
): ArgumentsOf {
  const make = (shown: JsonObject): (() => JsonObject) => {
    let made: { args: JsonObject; bytes: number } | undefined;
    return () => {
      if (made === undefined) {
        const parameters = parametersToObject(trigger.parameters.map(({ key, value }) => ({ key, value })));
        const args = { ...parameters, __ow_headers: shown, ...payload };
        made = { args, bytes: Buffer.byteLength(JSON.stringify(args)) };
      }
      if (made.bytes > most.bytes) throw tooLarge('Request', made.bytes, most.bytes, most.setBy);
      return made.args;
    };
  };
  const own = make(headers);
  const foreign = make(Object.fromEntries(Object.entries(headers).filter(([name]) => name !== 'authorization')));
  return ({ path }) => (path.split('/', 1)[0] === identity.namespace.name ? own() : foreign());
}

/** Dependencies of postAction. */
interface PostContext {
  /** The kinds that are supported at the time of the call. */
  manifest: () => RuntimeManifest;
  throttles: Pick<Throttles, 'admit'>;
  actionResolver: Pick<ActionResolver, 'cached' | 'resolve'>;
  /** Runs actions, sequences and compositions. */
  invoker: InvokeService;
}

/**
 * Invokes an action for the identity of a fire, like a non-blocking POST. Resolves with the activation's id when the activation is
 * accepted. `args` must not be modified afterwards. Throws ApiError.
 */
export async function postAction(
  context: PostContext,
  { identity, transactionId, trace }: Poster,
  action: EntityReference,
  args: JsonObject,
): Promise<string> {
  const { throttles, actionResolver, manifest } = context;
  // Synchronous results are not awaited, as a fire's rules are counted and sent one after the other.
  const admitted = throttles.admit(identity);
  if (admitted !== undefined) await admitted;
  const name = actionNameOf(action);
  const resolved = actionResolver.cached(identity, name) ?? (await actionResolver.resolve(identity, name));
  checkInvocable(resolved.action, args, manifest());
  const outcome = await context.invoker.invoke({
    ...resolved,
    identity,
    payload: args,
    blocking: false,
    waitMs: 0,
    transactionId,
    trace,
  });
  return outcome.type === 'accepted' ? outcome.activationId : outcome.activation.activationId;
}
