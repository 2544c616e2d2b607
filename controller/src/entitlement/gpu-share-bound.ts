import { gpuShareTooLarge } from '@gpuwhisk/common/errors';
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { GpuNeed } from '@gpuwhisk/common/gpu';
import { shareOf } from '@gpuwhisk/gpu/view/shares';

/**
 * What a function needs, bounded to the share classes that its namespace may have: those up to `maxPercent`, the smallest
 * in any case; undefined: all. Throws ApiError (429) where its owner asks for more.
 */
export function withinShare(need: GpuNeed, maxPercent = 100): GpuNeed {
  const maxShareClass = shareClasses.findLast((one) => one <= maxPercent) ?? shareClasses[0];
  if (maxShareClass === 100) return need;
  const { mpsPercent, smLimit, smRequest = 0 } = need;
  const isFixed = mpsPercent !== undefined || smLimit !== undefined;
  const asked = Math.max(isFixed ? shareOf(need).shareClass : 0, Math.ceil(smRequest * 100));
  if (asked > maxShareClass) throw gpuShareTooLarge(asked, maxPercent);
  return { ...need, maxShareClass };
}
