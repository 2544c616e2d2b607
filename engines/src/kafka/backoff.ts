import type { Random } from '@gpuwhisk/common/system/random';
import { randomFraction } from '@gpuwhisk/common/system/random';

const firstMs = 50;
const longestMs = 2000;

/** How long to wait after the failure number `attempt`, from 0 on, ms: doubling up to two seconds, less up to a half by chance. */
export function backoffMs(attempt: number, random: Random): number {
  return Math.min(longestMs, firstMs * 2 ** Math.min(attempt, 20)) * (1 - randomFraction(random) / 2);
}
