// The agent's check of a placement against the present state of the device.
import type { Device, DeviceHealth, Placement } from '@gpuwhisk/common/gpu';
import { endsInTime, refusing, mayShare } from '@gpuwhisk/gpu/stages/place/fact-filters';
import type { Account, Work, Tenant } from '@gpuwhisk/gpu/ledger/account';
import { memoryOn } from '@gpuwhisk/gpu/ledger/occupancy';
import { clientLimitOf } from '@gpuwhisk/gpu/ledger/places';
import type { GpuGrant } from '../containers/container-factory.js';
import type { GpuContainers } from './gpu-containers.js';
import { grantKey, grantOf, haveOneCaller } from './gpu-runs.js';
import type { GpuUser } from './gpu-runs.js';

/** The node's state that a placement is checked against. */
interface PlacementView {
  /** The greatest epoch known. */
  epoch: number;
  /** Whether the cluster's state is out of reach, so that a greater epoch may be unknown. */
  isCutOff: boolean;
  devices: readonly Device[];
  healthOf(device: string): DeviceHealth;
  /** Memory of a device or slice that containers may claim in total, MiB. */
  capacityMiB(place: string): number;
  /**
   * Free memory of a device or slice, idle containers counted as free, MiB; Infinity for an activation that joins others.
   */
  freeMiB(place: string): number;
  /** Whether a container that the placement reclaims is busy again. */
  isBusy(container: string): boolean;
  /** Occupancy of a device, or of the placement's slice of it. */
  occupancyOn(device: Device): PlaceOccupancy;
  /** Number of processes on a device that are not the platform's. */
  workloadsOn(device: string): number;
  user: GpuUser;
}

/**
 * Why a placement is refused; undefined if it is accepted on all of its devices. A placement is void if the node's state has
 * changed so that it no longer fits.
 */
export function placementProblem(placement: Placement, view: PlacementView): string | undefined {
  const { devices, slice, epoch, reclaim = [], partsMiB } = placement;
  if (epoch < view.epoch) return `it was decided in epoch ${epoch}, and ${view.epoch} has begun`;
  if (view.isCutOff)
    return 'its node does not reach the state of the cluster, and may not know the deciding controller';
  const found = devices.map((uuid) => view.devices.find((one) => one.uuid === uuid));
  const [first, ...more] = found;
  if (devices.length === 0 || first === undefined) return `there is no device ${devices[0] ?? ''}`;
  if (new Set(devices).size < devices.length) return 'it names a device twice';
  if (more.length > 0 && slice !== undefined) return 'a slice is never one of several';
  if (partsMiB !== undefined && !arePartsOf(partsMiB, devices)) return 'its memory is not split over its devices';
  if (more.some((one) => one?.type !== first.type || one.mode !== first.mode)) {
    return 'several devices have to be alike, and shared alike';
  }
  const busy = reclaim.find((container) => view.isBusy(container));
  if (busy !== undefined) return `container ${busy}, which was to be reclaimed, is busy again`;
  for (const device of found) {
    const problem = device === undefined ? 'a device is not there' : deviceProblem(device, placement, view);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function arePartsOf(partsMiB: readonly number[], devices: readonly string[]): boolean {
  return partsMiB.length === devices.length && partsMiB.every((part) => part > 0);
}

function deviceProblem(device: Device, placement: Placement, view: PlacementView): string | undefined {
  const { slice, devices } = placement;
  const { uuid, mode, slices } = device;
  if (slice === undefined && mode === 'mig') return `device ${uuid} is cut into slices`;
  if (slice !== undefined && !slices.some((one) => one.uuid === slice)) return `there is no slice ${slice}`;
  const id = slice ?? uuid;
  const { staying, busy, clients, servesItself } = view.occupancyOn(device);
  const health = view.healthOf(uuid);
  const account: Account = {
    mode,
    // A device that leaves is as good as another one for a run that ends in time, in an instance that is there.
    health: servesItself && endsInTime(health, view.user) ? { state: 'healthy', reasons: [] } : health,
    capacityMiB: view.capacityMiB(id),
    availableMiB: view.freeMiB(id),
    clients,
    clientLimit: clientLimitOf({ device, slice: slices.find((one) => one.uuid === slice) }),
    busy,
    workloads: view.workloadsOn(uuid),
    staying,
  };
  const { action, namespace, isolation, timeLimitMs } = view.user;
  // Namespaces' bounds are checked by the scheduler.
  const work: Work = {
    action,
    namespace,
    isolation,
    gpus: devices.length,
    memoryMiB: memoryOn(placement, id),
    isBounded: false,
    ...(timeLimitMs !== undefined && { timeLimitMs }),
  };
  const filter = refusing(account, work);
  if (filter === undefined) return undefined;
  const { reason, numbers } = filter.explain(account, work);
  const told = Object.entries(numbers).map(([name, value]) => `${name} ${value}`);
  const other = filter.code === 'isolation' && staying.find((one) => !mayShare(mode, one, work));
  if (other !== false && other !== undefined) told.unshift(other.name);
  const place = slice === undefined ? `device ${uuid}` : `slice ${slice}`;
  return `${place}: ${reason}${told.length === 0 ? '' : ` (${told.join(', ')})`}`;
}

function tenant(user: GpuUser | undefined, { devices }: GpuGrant): Tenant {
  return { ...user, gpus: devices.length };
}

/** A tenant of a place, with its name in refusals. */
interface NamedTenant extends Tenant {
  name: string;
}

/** The tenants of a device or slice besides an activation's own instances. */
interface PlaceOccupancy {
  staying: NamedTenant[];
  /** Number of busy containers. */
  busy: number;
  /** Number of containers, with idle and reserved ones, but without an idle one that serves the activation. */
  clients: number;
  /** An instance is there that serves the activation. */
  servesItself: boolean;
}

/**
 * The occupancy of a place besides an activation, with reservations, and without containers that the activation reclaims.
 */
export function occupancyOf(
  gpuContainers: GpuContainers,
  user: GpuUser,
  placement: Placement,
  { uuid }: Device,
): PlaceOccupancy {
  const place = placement.slice ?? uuid;
  const grant = grantOf(placement);
  const isOwn = (other: GpuUser | undefined, its: GpuGrant): boolean =>
    haveOneCaller(other, user) && grantKey(its) === grantKey(grant);
  const occupancy: PlaceOccupancy = { staying: [], busy: 0, clients: 0, servesItself: false };
  for (const { container, ending, lastUser, grant: its, users } of gpuContainers.at(place)) {
    if (ending || placement.reclaim?.includes(container.id) === true) continue;
    occupancy.clients += 1;
    if (isOwn(lastUser, its) && (users.size === 0 || placement.joins === true)) occupancy.servesItself = true;
    else {
      occupancy.staying.push({ ...tenant(lastUser, its), name: `container ${container.id}` });
      occupancy.busy += Number(users.size > 0);
    }
  }
  for (const other of gpuContainers.awaited(place, user.activationId)) {
    occupancy.clients += 1;
    if (isOwn(other.user, other.grant) && (grant.devices.length === 1 || placement.joins === true)) continue;
    occupancy.staying.push({ ...tenant(other.user, other.grant), name: `activation ${other.user.activationId}` });
  }
  if (occupancy.servesItself) occupancy.clients -= 1;
  return occupancy;
}

/**
 * Why a container cannot start on its devices now, as an MPS server serves either one device or a set of several; undefined
 * if it can.
 */
export function gangConflict(
  gpuContainers: GpuContainers,
  { devices }: GpuGrant,
  mode: Device['mode'],
): string | undefined {
  if (mode !== 'mps') return undefined;
  const isOther = (grant: GpuGrant): boolean =>
    Math.max(grant.devices.length, devices.length) > 1 && grant.devices.join() !== devices.join();
  for (const device of devices) {
    const there = gpuContainers.on(device).filter(({ ending }) => !ending);
    const grants = [...there, ...gpuContainers.awaited(device, '')].map(({ grant }) => grant);
    if (grants.some(isOther))
      return `${device} is used by a process of ${devices.length > 1 ? 'another set of' : 'several'} devices`;
  }
  return undefined;
}
