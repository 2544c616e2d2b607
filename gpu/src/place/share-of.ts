import { shareClasses } from '@gpuwhisk/common/gpu';
import type { GpuNeed, Share, ShareClass } from '@gpuwhisk/common/gpu';

/** The smallest class with at least `fraction` of the SMs. */
export function classAtOrAbove(fraction: number): ShareClass {
  return shareClasses.find((one) => one >= fraction * 100) ?? 100;
}

/** Part by which launch cycles of a function with an SLO may grow before its neighbours give way (Dilu, section 3.4.1). */
const violation = 0.2;

/** What a function gets that nothing has been learned about: what its annotation names, else the whole device. */
export function shareOf({ memoryMiB, mpsPercent, sloMs, smLimit, smRequest }: GpuNeed): Share {
  const limit = smLimit ?? (mpsPercent ?? 100) / 100;
  return {
    shareClass: classAtOrAbove(limit),
    smRequest: smRequest ?? limit,
    smLimit: limit,
    memoryMiB,
    ...(sloMs !== undefined && { tokens: { violation } }),
  };
}
