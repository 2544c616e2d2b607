import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { notAuthorized } from '@gpuwhisk/common/errors';
import type { ActionCache } from './action-cache.js';

/** An action's name, in parts. */
export interface ActionName {
  namespace: string;
  /** The package or binding that the path names; absent: the namespace's own action. */
  packageName?: string;
  name: string;
}

/** What a name leads to when it is invoked. */
export interface ResolvedAction {
  /** The action itself, without code; its parameters are merged with those of its package and binding. */
  action: WhiskAction;
  /** `ns/pkg` of the binding that led to it. */
  binding?: string;
}

/** `/ns/a`, `ns/a`, `/ns/pkg/a`, … in parts; undefined if it has neither two nor three. */
export function parseActionName(fullName: string): ActionName | undefined {
  const parts = fullName.split('/').filter((part) => part !== '');
  const [namespace, second, third] = parts;
  if (namespace === undefined || second === undefined || parts.length > 3) return undefined;
  return third === undefined ? { namespace, name: second } : { namespace, packageName: second, name: third };
}

/** Finds the action that a name leads to, for whoever may use it. */
export class ActionResolver {
  constructor(private readonly actions: ActionCache) {}

  /** The action that `identity` invokes by this name. Throws ApiError (403, 404, 409, 500). */
  async resolve(identity: Identity, { namespace, packageName, name }: ActionName): Promise<ResolvedAction> {
    const path = packageName === undefined ? namespace : `${namespace}/${packageName}`;
    if (namespace !== identity.namespace.name) throw notAuthorized(`${path}/${name}`);
    return { action: await this.actions.resolve(path, name) };
  }
}
