import type { Device, DeviceHealth, Placement } from '@gpuwhisk/common/gpu';

/** What a placement is judged by. */
export interface AdmissionView {
  /** The greatest epoch that was seen. */
  epoch: number;
  /** Whether it may have missed a greater one: the cluster's state is out of reach. */
  isCutOff: boolean;
  devices: readonly Device[];
  healthOf(device: string): DeviceHealth;
  /** What a device or slice can still give, counting what idles as free, MiB. */
  freeMiB(place: string): number;
  /** Whether a container that the placement counts on to go runs something again. */
  isBusy(container: string): boolean;
  /** Why what is on a device or slice may not have it beside itself; undefined if it may. */
  companyProblem(device: Device, slice: string | undefined): string | undefined;
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

function deviceProblem(device: Device, { slice, share }: Placement, view: AdmissionView): string | undefined {
  const { uuid, mode, slices } = device;
  const { state, reasons } = view.healthOf(uuid);
  if (state !== 'healthy') return [`device ${uuid} is ${state}`, ...reasons].join(': ');
  if (slice === undefined && mode === 'mig') return `device ${uuid} is cut into slices`;
  if (slice !== undefined && !slices.some((one) => one.uuid === slice)) return `there is no slice ${slice}`;
  const company = view.companyProblem(device, slice);
  if (company !== undefined) return company;
  const freeMiB = view.freeMiB(slice ?? uuid);
  if (freeMiB >= share.memoryMiB) return undefined;
  const place = slice === undefined ? `device ${uuid}` : `slice ${slice}`;
  return `${place} has ${Math.max(0, freeMiB)} MiB free, and ${share.memoryMiB} are needed`;
}
