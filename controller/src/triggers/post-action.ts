import type { EntityReference } from '@gpuwhisk/common/entities/names';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { ActionName } from '../actions/action-resolver.js';
import type { ApiContext } from '../api/dependencies.js';
import { checkInvocable } from '../api/invocation.js';

/** What posting an action needs. */
export type PostContext = Pick<ApiContext, 'actionResolver' | 'invoker' | 'manifest' | 'throttles'>;

/** The name that the resolver takes. */
export function actionNameOf({ path, name }: EntityReference): ActionName {
  const slash = path.indexOf('/');
  if (slash < 0) return { namespace: path, name };
  return { namespace: path.slice(0, slash), packageName: path.slice(slash + 1), name };
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
