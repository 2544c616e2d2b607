import type { Identity } from '@gpuwhisk/common/entities/identity';
import type { PackageBinding, WhiskPackage } from '@gpuwhisk/common/entities/package';
import { packageId } from '@gpuwhisk/common/entities/package';
import {
  circularBinding,
  isApiError,
  notAuthorized,
  actionExecuteOnly,
  boundActionExecuteOnly,
  boundPackageExecuteOnly,
  packageExecuteOnly,
} from '@gpuwhisk/common/errors';
import type { PackageCache } from '../packages/package-store.js';
import type { ActionName } from '../entities/action-name.js';

/**
 * A package and those that its binding leads to: the named package first, each binding before its provider. The last one has
 * the actions.
 */
export type PackageChain = [WhiskPackage, ...WhiskPackage[]];

/** The package of a chain that has the actions. */
export function providerOf(chain: PackageChain): WhiskPackage {
  return chain[chain.length - 1] ?? chain[0];
}

/** Whether a namespace may read a package: its own, or a shared package that is no binding. */
function mayRead(namespace: string, read: WhiskPackage): boolean {
  return read.namespace === namespace || (read.binding === undefined && read.publish);
}

/** As readablePackages, from the cache; undefined unless all packages are cached and readable. */
export function cachedReadablePackages(
  packages: PackageCache,
  identity: Identity,
  name: PackageBinding,
): PackageChain | undefined {
  const namespace = identity.namespace.name;
  const named = packages.cached(name);
  if (named === undefined || !mayRead(namespace, named)) return undefined;
  if (named.binding === undefined) return [named];
  const provider = packages.cached(named.binding);
  // Bindings of bindings are rare and left to the slow path.
  if (provider === undefined || provider.binding !== undefined || !mayRead(namespace, provider)) return undefined;
  return [named, provider];
}

/**
 * The package of this name and those that its binding leads to, if `identity` may read them all. As in OpenWhisk, a package
 * that is missing in another namespace is refused like a private one. Throws ApiError: 403, and for the identity's own
 * packages 404, 409, 422, 500.
 */
export async function readablePackages(
  packages: PackageCache,
  identity: Identity,
  name: PackageBinding,
): Promise<PackageChain> {
  const first = await readablePackage(packages, identity, name, name);
  const chain: PackageChain = [first];
  for (let next = first.binding; next !== undefined;) {
    const id = packageId(next);
    if (chain.some((passed) => packageId(passed) === id)) throw circularBinding(id);
    const found = await readablePackage(packages, identity, next, name);
    chain.push(found);
    next = found.binding;
  }
  return chain;
}

/** One package of the chain that begins with `asked`. */
async function readablePackage(
  packages: PackageCache,
  identity: Identity,
  name: PackageBinding,
  asked: PackageBinding,
): Promise<WhiskPackage> {
  const namespace = identity.namespace.name;
  try {
    const found = await packages.resolve(name);
    if (mayRead(namespace, found)) return found;
  } catch (error) {
    if (name.namespace === namespace || !isApiError(error)) throw error;
  }
  throw notAuthorized(packageId(asked));
}

/**
 * Refuses actions that `identity` may not use. Reading and invoking need the same right. An action in a package or binding
 * needs the right to read that package; other actions belong to their namespace alone. Does not check that the actions
 * exist. Throws ApiError: 403 with all refused names, 404, 409, 422, 500 as readablePackages.
 */
export async function checkActionsUsable(
  packages: PackageCache,
  identity: Identity,
  names: readonly ActionName[],
): Promise<void> {
  const refused: string[] = [];
  for (const { namespace, packageName, name } of names) {
    if (packageName !== undefined) await readablePackages(packages, identity, { namespace, name: packageName });
    else if (namespace !== identity.namespace.name) refused.push(`${namespace}/${name}`);
  }
  if (refused.length > 0) throw notAuthorized(...refused);
}

// If shared packages are for execution only, other namespaces' entities are not readable (`executeOnly` in OpenWhisk's
// Packages.scala and Actions.scala).

/** Refuses `reader` the package `name` if its chain leads to another namespace. Throws ApiError (403). */
export function checkPackageShown(reader: string, name: PackageBinding, chain: PackageChain): void {
  if (name.namespace !== reader) throw packageExecuteOnly(packageId(name));
  const leading = chain.find(({ namespace, binding }) => binding !== undefined && binding.namespace !== namespace);
  if (leading !== undefined) throw boundPackageExecuteOnly(leading.name);
}

/** As checkPackageShown, for the action `asked` in `place` (whose namespace is `ns` or `ns/pkg`). Throws ApiError (403). */
export function checkActionShown(reader: string, asked: ActionName, place: { namespace: string }): void {
  const { namespace, packageName, name } = asked;
  if (packageName === undefined) return;
  const id = packageId({ namespace, name: packageName });
  if (namespace !== reader) throw actionExecuteOnly(id);
  if (!place.namespace.startsWith(`${namespace}/`)) throw boundActionExecuteOnly(`${id}/${name}`);
}
