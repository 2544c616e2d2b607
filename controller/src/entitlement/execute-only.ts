import type { PackageBinding } from '@gpuwhisk/common/entities/package';
import { packageId } from '@gpuwhisk/common/entities/package-codec';
import {
  actionExecuteOnly,
  boundActionExecuteOnly,
  boundPackageExecuteOnly,
  packageExecuteOnly,
} from '@gpuwhisk/common/errors';
import type { PackageChain } from './rights.js';
import type { ActionName } from '../entities/action-name.js';

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
