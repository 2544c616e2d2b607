import { shareClasses } from '@gpuwhisk/common/gpu';
import type { DeviceMode, GpuKind, GpuNeed, Share, ShareClass } from '@gpuwhisk/common/gpu';
import type { ProfiledShares, Task } from './view.js';

/** The smallest class with at least `fraction` of the SMs. */
export function classAtOrAbove(fraction: number): ShareClass {
  return shareClasses.find((one) => one >= fraction * 100) ?? 100;
}

/** Part by which launch cycles of a function with an SLO may grow before its neighbours give way (Dilu, section 3.4.1). */
const violation = 0.2;

/**
 * The share of a function without measurements: the share of its annotation, else the whole device, bounded by the limit of
 * its namespace.
 */
export function shareOf({ memoryMiB, mpsPercent, sloMs, smLimit, smRequest, maxShareClass = 100 }: GpuNeed): Share {
  const limit = Math.min(smLimit ?? (mpsPercent ?? 100) / 100, maxShareClass / 100);
  return {
    shareClass: classAtOrAbove(limit),
    smRequest: Math.min(smRequest ?? limit, limit),
    smLimit: limit,
    memoryMiB,
    ...(sloMs !== undefined && { tokens: { violation } }),
  };
}

/** The shares that a task's function was profiled with on a GPU of this type in this mode, or undefined. */
export function profiledOn(
  { profiledShares }: Pick<Task, 'profiledShares'>,
  { gpuType, mode }: GpuKind,
): ProfiledShares | undefined {
  return profiledShares?.find((one) => one.gpuType === gpuType && one.mode === mode);
}

/** Whether a process with a share of less than everything is held to it on a device in this mode. */
export function holdsToShares(mode: DeviceMode): boolean {
  return mode === 'mps' || mode === 'mig';
}
