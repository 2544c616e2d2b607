// Training jobs of the co-location replays, after the surfaces of inference.
import { latencyAt } from '../model/latency-surface.js';
import { saturationOf } from '../model/gpu-model.js';
import { readServedModels } from './served-models.js';
import { shareCurve, type ShareCurve } from './shared-device.js';

/** A model that is trained with a batch. */
export interface TrainedModel {
  model: string;
  batch: number;
}

/** A training job as it was profiled: request and limit are fractions of the SMs. */
export interface ProfiledTraining {
  name: string;
  curve: ShareCurve;
  request: number;
  limit: number;
  /** Time of a step without computation, ms, by the number of members. */
  syncMs(workers: number): number;
}

/** A step computes for so many times a forward pass: a backward pass costs twice as much. */
const passes = 3;
/** Idle part of a step by the number of members: 40 % with four (Dilu, section 2.3); with two, half of that. */
const idlePart = (workers: number): number => (workers < 2 ? 0 : workers < 4 ? 0.2 : 0.4);
/** The request of a training keeps 80 % of its throughput (Dilu, section 3.2). */
const requestPart = 0.8;

/**
 * Training of models whose inference was measured on an A100: no training is measured over shares, so that a step follows the
 * surface of its batch. Throws BenchDataError.
 */
export async function readTrainings(models: readonly TrainedModel[], folder?: string): Promise<ProfiledTraining[]> {
  const served = await readServedModels(
    models.map(({ model }) => model),
    folder,
  );
  return served.map(({ name, surface }, at) => {
    const { batch } = models[at] as TrainedModel;
    const [leastShare = 1] = surface.shares;
    const curve = shareCurve((share) => passes * latencyAt(surface, batch, share), leastShare);
    return {
      ...{ name, curve, limit: curve.saturation, request: saturationOf(curve.stretch, 1 / requestPart - 1) },
      syncMs: (workers) => (curve.aloneMs * idlePart(workers)) / (1 - idlePart(workers)),
    };
  });
}
