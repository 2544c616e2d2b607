import { overloaded, isApiError } from '@gpuwhisk/common/errors';
import { isRecordKept } from '@gpuwhisk/common/activations/record-policy';
import type { RecordLevels } from '@gpuwhisk/common/activations/record-policy';
import type { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { ActivationStatus, activationDocument } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { EntityReference } from '@gpuwhisk/common/entities/names';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import type { RuleLink, WhiskTrigger } from '@gpuwhisk/common/entities/trigger';
import { newActivationId } from '@gpuwhisk/common/ids';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import { transactionLogger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { failedResult, inactiveResult, resultLine, ruleArguments } from './rule-results.js';
import type { ArgumentsOf, RuleResult } from './rule-results.js';

/** One fire of a trigger that passed authentication and validation. */
export interface Fire {
  identity: Identity;
  trigger: WhiskTrigger;
  payload: JsonObject;
  /** The request's, lower-cased. */
  headers: JsonObject;
  transactionId: string;
  /** The caller asked for X-OW-EXTRA-LOGGING. */
  extraLogging: boolean;
  /** The arguments of one action, at most. */
  maxPayloadBytes: number;
}

/** What fires are made of. */
export interface TriggerFiresDependencies {
  clock: Clock;
  random: Random;
  logger: Logger;
  records: RecordWriter;
  /** Which records are stored. */
  recordLevels: RecordLevels;
  /** Posts an action and resolves with its activation's id. Throws ApiError. */
  post: (identity: Identity, action: EntityReference, args: JsonObject, transactionId: string) => Promise<string>;
}

/** Rules of one fire whose actions are posted at once; more wait for their turn. One group commit syncs them all. */
const maxRulesAtOnce = 1000;
/** How long a fire waits for its record: OpenWhisk's limit on a request, less a little. */
const recordWaitMs = 60_000;

/** Fires triggers: posts the actions of their active rules and records what came of it. */
export class TriggerFires {
  constructor(private readonly dependencies: TriggerFiresDependencies) {}

  /**
   * Fires a trigger; resolves with the activation's id once the rules' activations are accepted and the record is
   * stored, or with undefined, nothing done, if no rule is active. Throws ApiError (503).
   */
  async fire(fire: Fire): Promise<string | undefined> {
    const { clock, random, records } = this.dependencies;
    const { identity, trigger, payload } = fire;
    const rules = [...(trigger.rules ?? [])];
    if (!rules.some(([, link]) => link.status === 'active')) return undefined;
    if (records.isFull) throw overloaded();
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
    const { trigger, headers, payload, identity, maxPayloadBytes } = fire;
    const argumentsOf = ruleArguments(trigger, headers, payload, identity, maxPayloadBytes);
    const lines: string[] = [];
    for (let first = 0; first < rules.length; first += maxRulesAtOnce) {
      const together = rules.slice(first, first + maxRulesAtOnce).map(async ([rule, link]) => {
        const result =
          link.status === 'active' ? await this.runRule(fire, link, argumentsOf) : inactiveResult(rule, link);
        return resultLine(rule, link, result);
      });
      lines.push(...(await Promise.all(together)));
    }
    return lines;
  }

  private async runRule(
    { identity, transactionId }: Fire,
    { action }: RuleLink,
    argumentsOf: ArgumentsOf,
  ): Promise<RuleResult> {
    const { post, logger } = this.dependencies;
    try {
      return { activationId: await post(identity, action, argumentsOf(action), transactionId) };
    } catch (error) {
      if (!isApiError(error)) {
        transactionLogger(logger, transactionId, false).error({ err: error }, "a rule's action could not be posted");
      }
      return failedResult(error);
    }
  }

  /** Throws ApiError (503) where the store takes too long. */
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
