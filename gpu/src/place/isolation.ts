import type { DeviceMode } from '@gpuwhisk/common/gpu';
import type { Tenant } from '../view/account.js';

/** Whether both may be on one device (or slice) of this mode at once: as their isolations allow, and the mode. */
export function mayShare(mode: DeviceMode, one: Tenant, other: Tenant): boolean {
  // One process is a client of one MPS server: that of several devices has them for itself.
  if (mode === 'mps' && (one.gpus > 1 || other.gpus > 1)) return false;
  if (one.action !== undefined && one.action === other.action && one.namespace === other.namespace) return true;
  if (mode === 'exclusive' || one.isolation === 'exclusive' || other.isolation === 'exclusive') return false;
  if (one.isolation === undefined || other.isolation === undefined) return true;
  // Without MPS, processes share no server.
  if (mode === 'timeslice') return true;
  return one.namespace === other.namespace || (one.isolation === 'shared' && other.isolation === 'shared');
}
