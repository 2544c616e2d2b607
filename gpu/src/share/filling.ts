import { shareClasses } from '@gpuwhisk/common/gpu';
import { hasShare } from '../place/place.js';
import type { Task } from '../view/view.js';
import { granted, refused } from './share.js';
import type { ShareOut } from './share.js';
import { classAtOrAbove } from '../view/shares.js';

/** The share classes as fractions, rising. */
export const classFractions: readonly number[] = shareClasses.map((percent) => percent / 100);

/** The smallest class that holds all SMs that the task uses when alone; the whole GPU where it has not been profiled. */
export function fillingShare({ features }: Task): number {
  return features ? classAtOrAbove(features.smUtil) / 100 : 1;
}

/** What the task fills, where as much is left. */
export const filling: ShareOut = (task, seat) => {
  const share = task.share ?? fillingShare(task);
  return hasShare(seat, share) ? granted(share) : refused('too little of its SMs is left', { load: seat.load, share });
};
