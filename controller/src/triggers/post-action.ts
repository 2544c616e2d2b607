import type { EntityReference } from '@gpuwhisk/common/entities/entity-reference';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import type { ActionResolver } from '../actions/action-resolver.js';
import type { Throttles } from '../entitlement/throttles.js';
import type { InvokeService } from '../invoke/invoke-service.js';
import { checkInvocable } from '../http/invocation.js';
import { actionNameOf } from '../entities/action-name.js';

/** Dependencies of postAction. */
export interface PostContext {
  /** The kinds that are served now. */
  manifest: () => RuntimeManifest;
  throttles: Pick<Throttles, 'admit'>;
  actionResolver: Pick<ActionResolver, 'cached' | 'resolve'>;
  /** Runs actions of every sort. */
  invoker: InvokeService;
}

/**
 * Invokes an action as its non-blocking POST does, for `identity`; resolves with the activation's id once the
 * activation is accepted. `args` must not be modified afterwards. Throws ApiError.
 */
export async function postAction(
  context: PostContext,
  identity: Identity,
  action: EntityReference,
  args: JsonObject,
  transactionId: string,
): Promise<string> {
  const { throttles, actionResolver, manifest } = context;
  // Nothing is waited for that is at hand: the rules of a fire are counted and sent one after the other.
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
  });
  return outcome.type === 'accepted' ? outcome.activationId : outcome.activation.activationId;
}
