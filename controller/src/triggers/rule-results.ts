import { isApiError, internalError, tooLarge } from '@gpuwhisk/common/errors';
import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { ActivationStatusCode } from '@gpuwhisk/common/entities/activation';
import { referenceId } from '@gpuwhisk/common/entities/names';
import type { EntityReference } from '@gpuwhisk/common/entities/names';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { parametersToObject } from '@gpuwhisk/common/entities/parameters';
import type { RuleLink, WhiskTrigger } from '@gpuwhisk/common/entities/trigger';
import type { JsonObject } from '@gpuwhisk/common/json';

/** What one rule's part in a fire came to: a line of the trigger's logs. */
export type RuleResult = { activationId: string } | { statusCode: ActivationStatusCode; error: string };

/** The line that the trigger's record has for a rule. */
export function resultLine(rule: string, { action }: RuleLink, result: RuleResult): string {
  const target = { rule, action: referenceId(action) };
  if ('activationId' in result) {
    const { activationId } = result;
    return JSON.stringify({ statusCode: ActivationStatus.success, success: true, activationId, ...target });
  }
  const { statusCode, error } = result;
  return JSON.stringify({ statusCode, success: false, error, ...target });
}

/** An inactive rule's part. */
export function inactiveResult(rule: string, { action }: RuleLink): RuleResult {
  const error = `Rule '${rule}' is inactive, action '${referenceId(action)}' was not activated.`;
  return { statusCode: ActivationStatus.applicationError, error };
}

/** The part of a rule whose action was not accepted; only what the platform is to blame for is its error. */
export function failedResult(error: unknown): RuleResult {
  const { status, message } = isApiError(error) ? error : internalError();
  const isOurs = status >= 500;
  return { statusCode: isOurs ? ActivationStatus.whiskError : ActivationStatus.applicationError, error: message };
}

/** Makes the arguments of the rules' actions. Throws ApiError (413) where they are too large to be posted. */
export type ArgumentsOf = (action: EntityReference) => JsonObject;

/**
 * The trigger's parameters, then `__ow_headers`, then the payload; later ones win. Only actions of the firing user's
 * own namespace see the Authorization header: others' code must not learn the key.
 */
export function ruleArguments(
  trigger: WhiskTrigger,
  headers: JsonObject,
  payload: JsonObject,
  identity: Identity,
  maxBytes: number,
): ArgumentsOf {
  const make = (shown: JsonObject): (() => JsonObject) => {
    let made: { args: JsonObject; bytes: number } | undefined;
    return () => {
      if (made === undefined) {
        const parameters = parametersToObject(trigger.parameters.map(({ key, value }) => ({ key, value })));
        const args = { ...parameters, __ow_headers: shown, ...payload };
        made = { args, bytes: Buffer.byteLength(JSON.stringify(args)) };
      }
      if (made.bytes > maxBytes) throw tooLarge('Request', made.bytes, maxBytes);
      return made.args;
    };
  };
  const own = make(headers);
  const foreign = make(Object.fromEntries(Object.entries(headers).filter(([name]) => name !== 'authorization')));
  return ({ path }) => (path.split('/', 1)[0] === identity.namespace.name ? own() : foreign());
}
