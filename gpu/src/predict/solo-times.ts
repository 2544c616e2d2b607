import type { DeviceMode } from '@gpuwhisk/common/gpu';
import type { SlowdownPredictor, WorkloadFeatures } from './slowdown-predictor.js';

/** A task with its measurements. */
interface Measured {
  soloMs?: number;
  features?: WorkloadFeatures;
}

/** The kind of a GPU. */
interface GpuKind {
  type: string;
  mode: DeviceMode;
}

/** Predicted time alone at `share`, ms; Infinity where the task has not been measured. */
export type SoloTime = (task: Measured, share: number, gpu: GpuKind) => number;

const mostRemembered = 10_000;

/** Solo times by predictors. What was asked before is remembered, as long as the predictor is the same. */
export function soloTimes(predictorOf: (gpu: GpuKind) => SlowdownPredictor): SoloTime {
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
