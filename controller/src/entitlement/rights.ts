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
 * A package with what its binding leads to: the named one, for a binding its provider, and so on; the last has the
 * actions.
 */
export type PackageChain = [WhiskPackage, ...WhiskPackage[]];

/** The package of a chain that has the actions. */
export function providerOf(chain: PackageChain): WhiskPackage {
  return chain[chain.length - 1] ?? chain[0];
}

/** Whether a namespace may read a package: its own, or a shared one that is no binding. */
function mayRead(namespace: string, read: WhiskPackage): boolean {
  return read.namespace === namespace || (read.binding === undefined && read.publish);
}

/** As readablePackages, for packages that are all remembered; undefined for any other answer. */
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
  // A binding of a binding is rare: the long way finds it.
  if (provider === undefined || provider.binding !== undefined || !mayRead(namespace, provider)) return undefined;
  return [named, provider];
}

/**
 * The package of this name and what its binding leads to, if `identity` may read them all. As in OpenWhisk, what is
 * missing in another namespace is refused like what is private there.
 * Throws ApiError: 403, and for the identity's own packages 404, 409, 422, 500.
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

/** One link of the chain that `asked` begins. */
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
 * Refuses actions that `identity` may not use. Reading and invoking need the same: an action in a package or binding
 * needs the right to read that; one in no package belongs to its namespace alone. Whether the actions exist is not
 * looked at. Throws ApiError: 403 with all names that are refused, 404, 409, 422, 500 as readablePackages.
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

// Where shared packages are for execution only, what belongs to another namespace is not read (OpenWhisk's
// Packages.scala and Actions.scala, `executeOnly`).

/** Refuses `reader` the package `name`, which `chain` begins, where it leads out of the namespace. Throws ApiError (403). */
export function checkPackageShown(reader: string, name: PackageBinding, chain: PackageChain): void {
  if (name.namespace !== reader) throw packageExecuteOnly(packageId(name));
  const leading = chain.find(({ namespace, binding }) => binding !== undefined && binding.namespace !== namespace);
  if (leading !== undefined) throw boundPackageExecuteOnly(leading.name);
}

/** As checkPackageShown, for the action `asked` that lies in `place` (its namespace is `ns` or `ns/pkg`). Throws ApiError (403). */
export function checkActionShown(reader: string, asked: ActionName, place: { namespace: string }): void {
  const { namespace, packageName, name } = asked;
  if (packageName === undefined) return;
  const id = packageId({ namespace, name: packageName });
  if (namespace !== reader) throw actionExecuteOnly(id);
  if (!place.namespace.startsWith(`${namespace}/`)) throw boundActionExecuteOnly(`${id}/${name}`);
}
