// Sequences: running them, finding their components, and the checks before one is stored.
import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { ActivationResponse } from '@gpuwhisk/common/entities/activation';
import { isSequence } from '@gpuwhisk/common/entities/exec-codec';
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

/** How a sequence ends where the platform fails. */
export const sequenceFailed = (): ActivationResponse => whiskError('Sequence failed.');

/**
 * Runs components one after the other, each on the result of the one before, until one's result has a field
 * `error`, as OpenWhisk's SequenceActions does. `count` is shared with the sequences around and inside. Never rejects.
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
      // What came before may have taken long enough for an update, and invokers only run the latest.
      component = await (at === 0 ? found : again());
    } catch (error) {
      // Missing, or not the caller's to use.
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

/** `/_/a` → `/ns/a`: the components with the default namespace replaced. */
export function inNamespace(components: readonly string[], namespace: string): string[] {
  return components.map((component) => component.replace(/^\/_\//, `/${namespace}/`));
}

/** The action that a component names. Throws ApiError (400 where there is none, 403, 409, 500). */
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

/** A component and what it leads to. */
export interface FoundComponent {
  /** `/ns/a` or `/ns/pkg/a`. */
  name: string;
  /** As resolveComponent; a rejection may go unnoticed. */
  found: Promise<ResolvedAction>;
  /** Looks it up again: it may have been updated since. */
  again(): Promise<ResolvedAction>;
}

/** Looks all components up at once. */
export function findComponents(resolver: Resolver, identity: Identity, names: readonly string[]): FoundComponent[] {
  return names.map((name) => {
    const again = () => resolveComponent(resolver, identity, name);
    const found = again();
    // What is missing is missed when its turn comes.
    found.catch(() => undefined);
    return { name, found, again };
  });
}

/**
 * Checks a sequence that is to be stored as `id` (`ns/name` or `ns/pkg/name`), as OpenWhisk's
 * Actions.checkSequenceActionLimits does: its components exist, it does not come to more than `maxLength` actions and
 * is not part of itself. That its owner may use the components has been checked. Throws ApiError (400).
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
    // The depth only matters where stored sequences are cyclic already, which two updates at once can bring about.
    if (names.length > maxLength || depth > maxLength) throw sequenceTooLong();
    for (const name of names) {
      if (name === `/${id}`) throw sequenceCyclic();
      const { action } = await resolveComponent(resolver, identity, name);
      if (`${action.namespace}/${action.name}` === id) throw sequenceCyclic();
      if (isSequence(action.exec)) await count(inNamespace(action.exec.components, identity.namespace.name), depth + 1);
      else if (++actions > maxLength) throw sequenceTooLong();
    }
  };
  if (components.length === 0) throw sequenceWithoutComponents();
  await count(components, 0);
}
