import { shareClasses } from '@gpuwhisk/common/gpu';
import { classAtOrAbove } from '../../place/share-of.js';
import type { GpuState, Task } from '../policy.js';
import type { PolicyNeeds } from '../registry.js';

/** The share classes as fractions, rising. */
export const classFractions: readonly number[] = shareClasses.map((percent) => percent / 100);

/** The smallest class that holds all SMs that the task uses when alone; the whole GPU where it has not been profiled. */
export function fillingShare({ features }: Task): number {
  return features ? classAtOrAbove(features.smUtil) / 100 : 1;
}

/**
 * Predicted time alone at `share`, ms; Infinity where the task has not been measured, so that no share below the whole
 * is known to do.
 */
export function soloMsAt(task: Task, share: number, gpu: GpuState, needs: Pick<PolicyNeeds, 'predictorOf'>): number {
  const { soloMs, features } = task;
  if (soloMs === undefined || !features) return Infinity;
  return soloMs * needs.predictorOf(gpu).slowdown({ features, share }, []);
}

/** What is left for a task's start and run, ms; Infinity for best effort and for one that is late anyway. */
export function budgetMs({ arrivedAt, sloMs, startMs = 0 }: Task, at: number): number {
  if (sloMs === undefined) return Infinity;
  const left = arrivedAt + sloMs - at - startMs;
  return left > 0 ? left : Infinity;
}
