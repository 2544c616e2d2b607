import type { Device, Placement } from '@gpuwhisk/common/gpu';
import { mayShare } from '@gpuwhisk/gpu/place/isolation';
import type { Tenant } from '@gpuwhisk/gpu/view/account';
import type { GpuGrant } from '../containers/container-factory.js';
import { grantKey, grantOf, haveOneCaller } from './gpu-desk.js';
import type { GpuUser } from './gpu-desk.js';
import type { Residents } from './residents.js';

function tenant(user: GpuUser | undefined, { devices }: GpuGrant): Tenant {
  return { ...user, gpus: devices.length };
}

/**
 * Why what is on a device or slice, or was promised it, may not have an activation beside itself; undefined if it may. What
 * the placement has go counts no more.
 */
export function companyProblem(
  residents: Residents,
  user: GpuUser,
  placement: Placement,
  { uuid, mode }: Device,
): string | undefined {
  const place = placement.slice ?? uuid;
  const grant = grantOf(placement);
  const own = tenant(user, grant);
  const isOwn = (other: GpuUser | undefined, its: GpuGrant): boolean =>
    haveOneCaller(other, user) && grantKey(its) === grantKey(grant);
  const staying = residents
    .at(place)
    .filter(({ container, ending }) => !ending && placement.reclaim?.includes(container.id) !== true);
  for (const one of staying) {
    const isItsInstance = isOwn(one.lastUser, one.grant) && (one.users.size === 0 || placement.joins === true);
    if (isItsInstance) continue;
    if (mode === 'exclusive' && one.users.size > 0) return `${place} serves one process at a time`;
    if (!mayShare(mode, tenant(one.lastUser, one.grant), own)) {
      return `isolation: container ${one.container.id} on ${place} is not to be beside it`;
    }
  }
  for (const other of residents.awaited(place, user.activationId)) {
    if (isOwn(other.user, other.grant) && (own.gpus === 1 || placement.joins === true)) continue;
    if (!mayShare(mode, tenant(other.user, other.grant), own)) {
      return `isolation: activation ${other.user.activationId} is to have ${place}, and not beside it`;
    }
  }
  return undefined;
}

/** Why a container cannot be started on a device now; undefined if it can: an MPS server serves a device, or several. */
export function gangProblem(residents: Residents, { devices }: GpuGrant, mode: Device['mode']): string | undefined {
  if (mode !== 'mps') return undefined;
  const isOther = (grant: GpuGrant): boolean =>
    Math.max(grant.devices.length, devices.length) > 1 && grant.devices.join() !== devices.join();
  for (const device of devices) {
    const there = residents.on(device).filter(({ ending }) => !ending);
    const grants = [...there, ...residents.awaited(device, '')].map(({ grant }) => grant);
    if (grants.some(isOther))
      return `${device} is used by a process of ${devices.length > 1 ? 'another set of' : 'several'} devices`;
  }
  return undefined;
}
