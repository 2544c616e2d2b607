import type { Device, DeviceHealth, Placement } from '@gpuwhisk/common/gpu';

/** What a placement is judged by. */
export interface AdmissionView {
  /** The greatest epoch that was seen. */
  epoch: number;
  devices: readonly Device[];
  healthOf(device: string): DeviceHealth;
  /** What a device or slice can still give, counting what idles as free, MiB. */
  freeMiB(place: string): number;
  /** Whether a container that the placement counts on to go runs something again. */
  isBusy(container: string): boolean;
}

/** Why a placement is not taken; undefined if it is. What changed since it was decided makes it void. */
export function admissionProblem(placement: Placement, view: AdmissionView): string | undefined {
  const { devices, slice, share, epoch, reclaim = [] } = placement;
  if (epoch < view.epoch) return `it was decided in epoch ${epoch}, and ${view.epoch} has begun`;
  const [uuid, ...more] = devices;
  if (uuid === undefined || more.length > 0) return `this invoker gives a function one device, not ${devices.length}`;
  const device = view.devices.find((one) => one.uuid === uuid);
  if (device === undefined) return `there is no device ${uuid}`;
  const { state, reasons } = view.healthOf(uuid);
  if (state !== 'healthy') return [`device ${uuid} is ${state}`, ...reasons].join(': ');
  if (slice === undefined && device.mode === 'mig') return `device ${uuid} is cut into slices`;
  if (slice !== undefined && !device.slices.some((one) => one.uuid === slice)) return `there is no slice ${slice}`;
  const busy = reclaim.find((container) => view.isBusy(container));
  if (busy !== undefined) return `container ${busy}, which was to make room, runs something again`;
  const freeMiB = view.freeMiB(slice ?? uuid);
  if (freeMiB >= share.memoryMiB) return undefined;
  return `${slice === undefined ? 'device' : 'slice'} ${slice ?? uuid} has ${Math.max(0, freeMiB)} MiB free, and ${share.memoryMiB} are needed`;
}
