import type { WorkloadFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { ModelWorkload } from '../model/parameters.js';

/** Where a figure of a workload is from: a row of measured data, the paper, or nowhere. */
export type Source = string;

/** A workload that jobs of a replay run. */
export interface CatalogueEntry {
  name: string;
  class: 'inference' | 'training';
  batch: number;
  /** One batch or one training iteration alone on the whole GPU, ms. */
  unitMs: number;
  memoryMiB: number;
  /** What the model tier makes of it. */
  model: ModelWorkload;
  /** Of its figures; `invented` ones are perturbed in a second run. */
  sources: { unitMs: Source; memoryMiB: Source; stretch: Source; traffic: Source };
}

/** What a profile of an entry would show, without noise: what the predictors get. */
export function featuresOf({ model }: CatalogueEntry): WorkloadFeatures {
  return { smUtil: model.saturation, dramUtil: model.dramUtil, l2Util: model.l2Util };
}

/** Stands for an invented figure. */
export const invented: Source = 'invented';
