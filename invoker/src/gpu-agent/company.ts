import type { Device, Placement } from '@gpuwhisk/common/gpu';
import type { Tenant } from '@gpuwhisk/gpu/view/account';
import type { GpuGrant } from '../containers/container-factory.js';
import { grantKey, grantOf, haveOneCaller } from './gpu-desk.js';
import type { GpuUser } from './gpu-desk.js';
import type { Residents } from './residents.js';

function tenant(user: GpuUser | undefined, { devices }: GpuGrant): Tenant {
  return { ...user, gpus: devices.length };
}

/** A tenant of a place, and what it is called in refusals. */
export interface NamedTenant extends Tenant {
  name: string;
}

/** The tenants of a device or slice besides an activation's own instances. */
export interface Company {
  staying: NamedTenant[];
  /** Containers that run something. */
  busy: number;
  /** Containers, those that idle and those that were promised included; an idle one that serves the activation is not. */
  clients: number;
}

/** The tenants that stay on a place, or were promised it, beside an activation; containers that it reclaims do not. */
export function companyOf(residents: Residents, user: GpuUser, placement: Placement, { uuid }: Device): Company {
  const place = placement.slice ?? uuid;
  const grant = grantOf(placement);
  const isOwn = (other: GpuUser | undefined, its: GpuGrant): boolean =>
    haveOneCaller(other, user) && grantKey(its) === grantKey(grant);
  const company: Company = { staying: [], busy: 0, clients: 0 };
  let servesItself = false;
  for (const { container, ending, lastUser, grant: its, users } of residents.at(place)) {
    if (ending || placement.reclaim?.includes(container.id) === true) continue;
    company.clients += 1;
    if (isOwn(lastUser, its) && (users.size === 0 || placement.joins === true)) servesItself = true;
    else {
      company.staying.push({ ...tenant(lastUser, its), name: `container ${container.id}` });
      company.busy += Number(users.size > 0);
    }
  }
  for (const other of residents.awaited(place, user.activationId)) {
    company.clients += 1;
    if (isOwn(other.user, other.grant) && (grant.devices.length === 1 || placement.joins === true)) continue;
    company.staying.push({ ...tenant(other.user, other.grant), name: `activation ${other.user.activationId}` });
  }
  if (servesItself) company.clients -= 1;
  return company;
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
