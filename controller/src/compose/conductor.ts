import type { ActivationResponse, WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { activationResult } from '@gpuwhisk/common/entities/activation';
import { isEntityName } from '@gpuwhisk/common/entities/names';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { isApiError } from '@gpuwhisk/common/errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { ResolvedAction } from '../actions/action-resolver.js';
import type { ComponentTally, CompositionCount, Payload, ComponentInvoker } from './composite.js';
import { applicationError, isConductor, whiskError } from './composite.js';
import type { InvokeOutcome } from '../invoke/invoke-service.js';
import type { Resolver } from './sequence.js';
import { parseActionName } from '../entities/action-name.js';
import type { ActionName } from '../entities/action-name.js';

const tooLong = 'Too many actions in the composition.';

/** The response of a composition that failed by the platform's fault. */
export const compositionFailed = (): ActivationResponse => whiskError('Activation failure during composition.');

/** The continuation that a conductor's result names. */
interface Continuation {
  /** The name of the next component; undefined: the composition ends. */
  action: JsonValue | undefined;
  params: JsonObject | undefined;
  state: JsonObject | undefined;
}

/**
 * Runs a composition as OpenWhisk's PrimitiveActions does. The conductor and the component that it names run in turn, each
 * on the other's result, until the conductor names none. `count` is shared with enclosing and nested compositions. Never
 * rejects.
 */
export async function runComposition(
  stage: ComponentInvoker,
  resolver: Resolver,
  identity: Identity,
  conductor: ResolvedAction,
  payload: Payload,
  tally: ComponentTally,
  count: CompositionCount,
): Promise<ActivationResponse> {
  let input = payload;
  let state: JsonObject | undefined;
  while (count.conductors <= 2 * stage.maxLength && !stage.exhausted) {
    count.conductors++;
    const reached = await ended(tally, stage.invokeCode(conductor, withState(input, state)));
    if ('failed' in reached) return reached.failed;
    const { activation } = reached;
    const result = activationResult(activation);
    const next = readContinuation(result);
    state = next.state;
    if (next.action === undefined) {
      return { statusCode: activation.response.statusCode, result: next.params ?? result };
    }
    const component = await nextComponent(resolver, identity, next.action, count, stage.maxLength);
    if ('error' in component) {
      input = { error: component.error };
      continue;
    }
    // A nested composition counts the runs of its conductor itself.
    if (!isConductor(component.action)) count.components++;
    const done = await ended(tally, stage.invoke(component, next.params ?? {}, { composition: count }));
    if ('failed' in done) return done.failed;
    input = activationResult(done.activation);
  }
  return applicationError(tooLong);
}

async function ended(
  tally: ComponentTally,
  invocation: Promise<InvokeOutcome>,
): Promise<{ activation: WhiskActivation } | { failed: ActivationResponse }> {
  let outcome: InvokeOutcome;
  try {
    outcome = await invocation;
  } catch {
    return { failed: compositionFailed() };
  }
  if (outcome.type === 'completed') {
    tally.add(outcome.activation);
    return outcome;
  }
  tally.ids.push(outcome.activationId);
  return {
    failed: whiskError(`Timeout reached when retrieving activation ${outcome.activationId} during composition.`),
  };
}

/** Adds the state's fields to the input. An array cannot hold fields: it becomes a field itself. */
function withState(input: Payload, state: JsonObject | undefined): Payload {
  if (state === undefined) return input;
  return { ...(Array.isArray(input) ? { value: input } : input), ...state };
}

function readContinuation(result: Payload): Continuation {
  if (Array.isArray(result)) return { action: undefined, params: undefined, state: undefined };
  const { action, params, state } = result;
  return { action, params: boxed(params, 'value'), state: boxed(state, 'state') };
}

function boxed(value: JsonValue | undefined, key: string): JsonObject | undefined {
  return value === undefined || isJsonObject(value) ? value : { [key]: value };
}

/** The component that a conductor names, or the error that the conductor gets instead. */
async function nextComponent(
  resolver: Resolver,
  identity: Identity,
  given: JsonValue,
  count: CompositionCount,
  maxLength: number,
): Promise<ResolvedAction | { error: string }> {
  const name = readActionName(given, identity.namespace.name);
  if (name === undefined) {
    return { error: `Failed to parse action name from json value ${JSON.stringify(given)} during composition.` };
  }
  if (count.components >= maxLength) return { error: tooLong };
  try {
    return await resolver.resolve(identity, name);
  } catch (error) {
    const fullName = [name.namespace, name.packageName, name.name].filter((part) => part !== undefined).join('/');
    return isApiError(error) && error.status === 403
      ? { error: `Failed entitlement check for action with name '${fullName}' during composition.` }
      : { error: `Failed to resolve action with name '${fullName}' during composition.` };
  }
}

/**
 * Reads the name of an action. `a` and `pkg/a` are in the caller's namespace; `/ns/a`, `/ns/pkg/a` and `ns/pkg/a` name one
 * (`_`: the caller's).
 */
function readActionName(value: JsonValue, namespace: string): ActionName | undefined {
  if (typeof value !== 'string') return undefined;
  const parts = value.split('/').filter((part) => part !== '');
  if (!parts.every(isEntityName)) return undefined;
  const qualified = value.startsWith('/') || parts.length === 3;
  const [first, ...rest] = qualified ? parts : [namespace, ...parts];
  return parseActionName([first === '_' ? namespace : first, ...rest].join('/'));
}
