import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { packageId } from '@gpuwhisk/common/entities/package';
import { mergeParameters } from '@gpuwhisk/common/entities/parameters';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import { notAuthorized } from '@gpuwhisk/common/errors';
import { cachedReadablePackages, checkActionsUsable, providerOf, readablePackages } from '../entitlement/rights.js';
import type { PackageChain } from '../entitlement/rights.js';
import type { PackageCache } from '../packages/package-store.js';
import type { ActionCache } from './action-store.js';
import type { ActionName } from '../entities/action-name.js';

/** The action that an invoked name resolves to. */
export interface ResolvedAction {
  /** The action without code; its parameters are merged with those of its package and binding. */
  action: WhiskAction;
  /** `ns/pkg` of the binding through which the action was reached. */
  binding?: string;
}

/** The place of an action, and the parameters that its package adds. */
export interface ActionPlace {
  /** `ns`, or `ns/pkg` for an action in a package. */
  namespace: string;
  name: string;
  /** Parameters of the package; those of the binding override them. */
  inherited: Parameter[];
  /** `ns/pkg` of the binding through which the action was reached. */
  binding?: string;
}

/** Resolves names to actions, for callers with the right to use them. */
export class ActionResolver {
  constructor(
    private readonly actions: ActionCache,
    private readonly packages: PackageCache,
  ) {}

  /** The action that `identity` invokes by this name. Throws ApiError (403, 404, 409, 422, 500). */
  async resolve(identity: Identity, name: ActionName): Promise<ResolvedAction> {
    const place = await this.locate(identity, name);
    return resolvedAt(place, await this.actions.resolve(place.namespace, place.name));
  }

  /** As checkActionsUsable. */
  checkUsable(identity: Identity, names: readonly ActionName[]): Promise<void> {
    return checkActionsUsable(this.packages, identity, names);
  }

  /** As `resolve`, from the caches alone; undefined if an entry is missing there. */
  cached(identity: Identity, { namespace, packageName, name }: ActionName): ResolvedAction | undefined {
    if (packageName === undefined) {
      const action = namespace === identity.namespace.name ? this.actions.cached(namespace, name) : undefined;
      return action && { action };
    }
    const chain = cachedReadablePackages(this.packages, identity, { namespace, name: packageName });
    if (chain === undefined) return undefined;
    const place = placeIn(chain, name);
    const action = this.actions.cached(place.namespace, name);
    return action && resolvedAt(place, action);
  }

  /** The place of the action that `identity` names; the action need not exist. Throws ApiError (403, 404, 409, 422, 500). */
  async locate(identity: Identity, { namespace, packageName, name }: ActionName): Promise<ActionPlace> {
    if (packageName === undefined) {
      if (namespace !== identity.namespace.name) throw notAuthorized(`${namespace}/${name}`);
      return { namespace, name, inherited: [] };
    }
    return placeIn(await readablePackages(this.packages, identity, { namespace, name: packageName }), name);
  }
}

function placeIn(chain: PackageChain, name: string): ActionPlace {
  const [named] = chain;
  const provider = providerOf(chain);
  const inherited = inheritedParameters(chain);
  const place = { namespace: packageId(provider), name, inherited };
  return provider === named ? place : { ...place, binding: packageId(named) };
}

/** The parameters of a package; those of bindings to the package override them. */
export function inheritedParameters(chain: PackageChain): Parameter[] {
  return chain.reduceRight<Parameter[]>((below, { parameters }) => mergeParameters(below, parameters), []);
}

function resolvedAt({ inherited, binding }: ActionPlace, action: WhiskAction): ResolvedAction {
  const merged =
    inherited.length === 0 ? action : { ...action, parameters: mergeParameters(inherited, action.parameters) };
  return binding === undefined ? { action: merged } : { action: merged, binding };
}
