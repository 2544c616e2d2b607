import type { Device, DeviceHealth, Placement } from '@gpuwhisk/common/gpu';
import { refusing, mayShare } from '@gpuwhisk/gpu/place/fact-filters';
import type { Account, Work } from '@gpuwhisk/gpu/view/account';
import type { Company } from './company.js';
import type { GpuUser } from './gpu-desk.js';

/** What a placement is judged by. */
export interface AdmissionView {
  /** The greatest epoch that was seen. */
  epoch: number;
  /** Whether it may have missed a greater one: the cluster's state is out of reach. */
  isCutOff: boolean;
  devices: readonly Device[];
  healthOf(device: string): DeviceHealth;
  /** What a device or slice may give away in all, MiB. */
  capacityMiB(place: string): number;
  /** What it can still give, counting what idles as free, MiB; Infinity for an activation that joins others. */
  freeMiB(place: string): number;
  /** Whether a container that the placement counts on to go runs something again. */
  isBusy(container: string): boolean;
  /** Who is on a device, or on the placement's slice of it. */
  companyOn(device: Device): Company;
  /** Processes on a device that are not the platform's. */
  workloadsOn(device: string): number;
  user: GpuUser;
}

/**
 * Why a placement is not taken; undefined if it is, on all of its devices. What changed since it was decided makes it void.
 */
export function admissionProblem(placement: Placement, view: AdmissionView): string | undefined {
  const { devices, slice, epoch, reclaim = [] } = placement;
  if (epoch < view.epoch) return `it was decided in epoch ${epoch}, and ${view.epoch} has begun`;
  if (view.isCutOff) return 'its node does not reach the state of the cluster, and may not know who decides';
  const found = devices.map((uuid) => view.devices.find((one) => one.uuid === uuid));
  const [first, ...more] = found;
  if (devices.length === 0 || first === undefined) return `there is no device ${devices[0] ?? ''}`;
  if (new Set(devices).size < devices.length) return 'it names a device twice';
  if (more.length > 0 && slice !== undefined) return 'a slice is never one of several';
  if (more.some((one) => one?.type !== first.type || one.mode !== first.mode)) {
    return 'several devices have to be alike, and shared alike';
  }
  const busy = reclaim.find((container) => view.isBusy(container));
  if (busy !== undefined) return `container ${busy}, which was to make room, runs something again`;
  for (const device of found) {
    const problem = device === undefined ? 'a device is not there' : deviceProblem(device, placement, view);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function deviceProblem(device: Device, { slice, share, devices }: Placement, view: AdmissionView): string | undefined {
  const { uuid, mode, slices } = device;
  if (slice === undefined && mode === 'mig') return `device ${uuid} is cut into slices`;
  if (slice !== undefined && !slices.some((one) => one.uuid === slice)) return `there is no slice ${slice}`;
  const id = slice ?? uuid;
  const { staying, busy, clients } = view.companyOn(device);
  const account: Account = {
    ...{ mode, health: view.healthOf(uuid), capacityMiB: view.capacityMiB(id), availableMiB: view.freeMiB(id) },
    ...{ clients, busy, workloads: view.workloadsOn(uuid), staying },
  };
  const { action, namespace, isolation } = view.user;
  // Bounds of namespaces are the scheduler's to know.
  const work: Work = {
    ...{ action, namespace, isolation, gpus: devices.length, memoryMiB: share.memoryMiB, isBounded: false },
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
