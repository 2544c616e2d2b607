import type { PackageBinding } from '@gpuwhisk/common/entities/package';
import { packageId } from '@gpuwhisk/common/entities/package';
import {
  actionExecuteOnly,
  boundActionExecuteOnly,
  boundPackageExecuteOnly,
  packageExecuteOnly,
} from '@gpuwhisk/common/errors';
import type { ActionName, ActionPlace } from '../actions/action-resolver.js';
import type { PackageChain } from './rights.js';

// Where shared packages are for execution only, what belongs to another namespace is not read (OpenWhisk's
// Packages.scala and Actions.scala, `executeOnly`).

/** Refuses `reader` the package `name`, which `chain` begins, where it leads out of the namespace. Throws ApiError (403). */
export function checkPackageShown(reader: string, name: PackageBinding, chain: PackageChain): void {
  if (name.namespace !== reader) throw packageExecuteOnly(packageId(name));
  const leading = chain.find(({ namespace, binding }) => binding !== undefined && binding.namespace !== namespace);
  if (leading !== undefined) throw boundPackageExecuteOnly(leading.name);
}

/** As checkPackageShown, for the action `asked` that lies in `place`. Throws ApiError (403). */
export function checkActionShown(reader: string, asked: ActionName, place: ActionPlace): void {
  const { namespace, packageName, name } = asked;
  if (packageName === undefined) return;
  const id = packageId({ namespace, name: packageName });
  if (namespace !== reader) throw actionExecuteOnly(id);
  if (!place.namespace.startsWith(`${namespace}/`)) throw boundActionExecuteOnly(`${id}/${name}`);
}
