import type { WorkloadFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { ModelWorkload } from '../model/gpu-model.js';

/** Source of a workload's figure: a row of measured data, the paper, or `invented`. */
type Source = string;

/** A workload that jobs of a replay run. */
export interface CatalogueEntry {
  name: string;
  class: 'inference' | 'training';
  batch: number;
  /** Solo time of one batch or training iteration on the whole GPU, ms. */
  unitMs: number;
  memoryMiB: number;
  /** The workload's data for the model tier. */
  model: ModelWorkload;
  /** Sources of the figures; a second run perturbs the `invented` ones. */
  sources: { unitMs: Source; memoryMiB: Source; stretch: Source; traffic: Source };
}

/** The features that an exact profile of an entry has, as input of predictors. */
export function featuresOf({ model }: CatalogueEntry): WorkloadFeatures {
  return { smUtil: model.saturation, dramUtil: model.dramUtil, l2Util: model.l2Util };
}

/** Source of an invented figure. */
export const invented: Source = 'invented';

/** A row of FaaShare's table I: batch sizes with the SLO of each, ms, which is four times the solo time. */
interface TableOneRow {
  name: string;
  slosMs: ReadonlyMap<number, number>;
  /** The measured surface that gives its stretch, and whether that surface is of the model itself. */
  surface: string;
  isOwnSurface: boolean;
  /** The row of measured utilisations (RTX 3080) that gives its traffic. */
  traffic: string;
}

const row = (
  name: string,
  batches: readonly number[],
  slosMs: readonly number[],
  surface: string,
  traffic: string,
): TableOneRow => ({
  name,
  slosMs: new Map(batches.map((batch, i) => [batch, slosMs[i] as number])),
  surface,
  isOwnSurface: surface === name,
  traffic,
});

/**
 * The deep learning rows of FaaShare's table I for which a surface of the model or of a close relative was measured.
 * The native CUDA rows and the language models have no such surface and are left out.
 */
export const tableOne: readonly TableOneRow[] = [
  row('resnet152', [16, 32, 64, 128], [108, 207, 389, 751], 'resnet152', 'resnet50'),
  row('resnet101', [32, 64, 128, 256], [145, 273, 525, 1020], 'resnet101', 'resnet50'),
  row('resnet50', [16, 32, 64, 128], [46, 87, 164, 317], 'resnet50', 'resnet50'),
  row('resnet34', [64, 128, 256, 512], [94, 180, 360, 705], 'resnet34', 'resnet50'),
  row('resnet18', [8, 16, 32, 64, 128], [9, 15, 29, 54, 102], 'resnet34', 'resnet50'),
  row('densenet121', [16, 32, 64, 128], [52, 96, 180, 350], 'densenet121', 'densenet161'),
  row('densenet161', [32, 64, 128, 256], [219, 407, 780, 1550], 'densenet169', 'densenet161'),
  row('densenet201', [16, 32, 64, 128], [89, 158, 293, 566], 'densenet201', 'densenet161'),
  row('vgg19', [16, 32, 64, 128], [107, 209, 410, 806], 'vgg19', 'vgg16'),
  row('vgg16', [8, 16, 32, 64, 128], [47, 89, 172, 338, 667], 'vgg16', 'vgg16'),
  row('mobilenet', [64, 128, 256, 512], [60, 117, 232, 459], 'mobilenet_v3_large', 'mobilenet_v2'),
];

/** An SLO over solo time (FaaShare, section IX-A). */
export const sloFactor = 4;
