import { shareClasses } from '@gpuwhisk/common/gpu';
import { classAtOrAbove } from '../../share/share-of.js';
import type { SlowdownPredictor } from '../../predict/slowdown-predictor.js';
import type { GpuState, Task } from '../policy.js';
import type { PolicyNeeds } from '../registry.js';

/** The share classes as fractions, rising. */
export const classFractions: readonly number[] = shareClasses.map((percent) => percent / 100);

/** The smallest class that holds all SMs that the task uses when alone; the whole GPU where it has not been profiled. */
export function fillingShare({ features }: Task): number {
  return features ? classAtOrAbove(features.smUtil) / 100 : 1;
}

/** Predicted time alone at `share`, ms; Infinity where the task has not been measured. */
export type SoloTime = (task: Task, share: number, gpu: GpuState) => number;

const mostRemembered = 10_000;

/** Solo times by the predictors of `needs`. What was asked before is remembered, as long as the predictor is the same. */
export function soloTimes({ predictorOf }: Pick<PolicyNeeds, 'predictorOf'>): SoloTime {
  const known = new WeakMap<SlowdownPredictor, Map<string, number>>();
  return ({ soloMs, features }, share, gpu) => {
    if (soloMs === undefined || !features) return Infinity;
    const predictor = predictorOf(gpu);
    let memory = known.get(predictor);
    if (!memory || memory.size >= mostRemembered) known.set(predictor, (memory = new Map<string, number>()));
    const key = `${features.smUtil} ${features.dramUtil} ${features.l2Util} ${share}`;
    let slowdown = memory.get(key);
    if (slowdown === undefined) memory.set(key, (slowdown = predictor.slowdown({ features, share }, [])));
    return soloMs * slowdown;
  };
}

/** What is left for a task's start and run, ms; Infinity for best effort and for one that is late anyway. */
export function budgetMs({ arrivedAt, sloMs, startMs = 0 }: Task, at: number): number {
  if (sloMs === undefined) return Infinity;
  const left = arrivedAt + sloMs - at - startMs;
  return left > 0 ? left : Infinity;
}
