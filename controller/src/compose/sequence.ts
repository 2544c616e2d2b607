// Sequences: running them, looking up their components, and the checks before a sequence is stored.
import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { ActivationResponse } from '@gpuwhisk/common/entities/activation';
import { isSequence } from '@gpuwhisk/common/entities/exec-codec';
import { settingNamed } from '@gpuwhisk/common/entities/limits';
import {
  isApiError,
  sequenceTooLong,
  sequenceComponentMissing,
  sequenceCyclic,
  sequenceWithoutComponents,
} from '@gpuwhisk/common/errors';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { SequenceExec } from '@gpuwhisk/common/entities/action';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import type { ResolvedAction, ActionResolver } from '../actions/action-resolver.js';
import type { ComponentTally, Payload, ComponentInvoker } from './composite.js';
import { applicationError, whiskError } from './composite.js';
import type { InvokeOutcome } from '../invoke/invoke-service.js';
import { parseActionName } from '../entities/action-name.js';

const lengthSetting = settingNamed('limits.maxSequenceLength');

/** The response of a sequence that failed by the platform's fault. */
export const sequenceFailed = (): ActivationResponse => whiskError('Sequence failed.');

/**
 * Runs a sequence as OpenWhisk's SequenceActions does. Each component gets the result of the one before; a result with a
 * field `error` ends the sequence. `count` is shared with enclosing and nested sequences. Never rejects.
 */
export async function runSequence(
  stage: ComponentInvoker,
  components: readonly FoundComponent[],
  payload: Payload,
  tally: ComponentTally,
  count: { actions: number },
): Promise<ActivationResponse> {
  let response: ActivationResponse = { statusCode: ActivationStatus.success, result: payload };
  for (const [at, { found, again }] of components.entries()) {
    if (count.actions >= stage.maxLength || stage.exhausted) return applicationError(sequenceTooLong().message);
    let component: ResolvedAction;
    let outcome: InvokeOutcome;
    try {
      // The action may have been updated during the components before, and invokers run only the latest revision.
      component = await (at === 0 ? found : again());
    } catch (error) {
      // The action is missing, or the caller may not use it.
      return isApiError(error) && error.status < 500 ? applicationError(error.message) : sequenceFailed();
    }
    if (!isSequence(component.action.exec)) count.actions++;
    try {
      outcome = await stage.invoke(component, resultOf(response), { sequence: count });
    } catch {
      return sequenceFailed();
    }
    if (outcome.type === 'accepted') {
      tally.ids.push(outcome.activationId);
      return whiskError(`Timeout reached when retrieving activation ${outcome.activationId} for sequence component.`);
    }
    tally.add(outcome.activation);
    response = outcome.activation.response;
    if (isJsonObject(response.result) && response.result.error !== undefined) return response;
  }
  return response;
}

function resultOf({ result }: ActivationResponse): Payload {
  return isJsonObject(result) || Array.isArray(result) ? result : {};
}

/** The part of ActionResolver that sequences use. */
export type Resolver = Pick<ActionResolver, 'resolve'>;

/** `/_/a` → `/ns/a`: the components' names with `_` replaced by the namespace. */
export function inNamespace(components: readonly string[], namespace: string): string[] {
  return components.map((component) => component.replace(/^\/_\//, `/${namespace}/`));
}

/** The action that a component names. Throws ApiError (400 if it is missing, 403, 409, 500). */
async function resolveComponent(resolver: Resolver, identity: Identity, component: string): Promise<ResolvedAction> {
  const name = parseActionName(component);
  if (name === undefined) throw sequenceComponentMissing();
  try {
    return await resolver.resolve(identity, name);
  } catch (error) {
    if (isApiError(error) && error.status === 404) throw sequenceComponentMissing();
    throw error;
  }
}

/** A component's name and the action of that name. */
export interface FoundComponent {
  /** `/ns/a` or `/ns/pkg/a`. */
  name: string;
  /** As resolveComponent; a rejection need not be handled. */
  found: Promise<ResolvedAction>;
  /** Looks the action up again, as it may have been updated. */
  again(): Promise<ResolvedAction>;
}

/** Looks up all components at once. */
export function findComponents(resolver: Resolver, identity: Identity, names: readonly string[]): FoundComponent[] {
  return names.map((name) => {
    const again = () => resolveComponent(resolver, identity, name);
    const found = again();
    // A missing component fails only when it is about to run.
    found.catch(() => undefined);
    return { name, found, again };
  });
}

/**
 * Checks a sequence before it is stored as `id` (`ns/name` or `ns/pkg/name`), like OpenWhisk's
 * Actions.checkSequenceActionLimits. Its components must exist, it must not have more than `maxLength` actions, and it must
 * not contain itself. The caller has already checked the right to use the components. Throws ApiError (400).
 */
export async function checkSequence(
  resolver: Resolver,
  identity: Identity,
  id: string,
  { components }: SequenceExec,
  maxLength: number,
): Promise<void> {
  let actions = 0;
  const count = async (names: readonly string[], depth: number): Promise<void> => {
    // The bound on the depth ends the walk through stored cycles, which two concurrent updates can create.
    if (names.length > maxLength || depth > maxLength) throw sequenceTooLong(lengthSetting);
    for (const name of names) {
      if (name === `/${id}`) throw sequenceCyclic();
      const { action } = await resolveComponent(resolver, identity, name);
      if (`${action.namespace}/${action.name}` === id) throw sequenceCyclic();
      if (isSequence(action.exec)) await count(inNamespace(action.exec.components, identity.namespace.name), depth + 1);
      else if (++actions > maxLength) throw sequenceTooLong(lengthSetting);
    }
  };
  if (components.length === 0) throw sequenceWithoutComponents();
  await count(components, 0);
}
