import type { DeviceMode } from '@gpuwhisk/common/gpu';
import { capacityModel } from './capacity-model.js';
import { decodeModel } from './model-codec.js';
import { modelPredictor } from './slowdown-model.js';
import type { SlowdownPredictor } from './slowdown-predictor.js';

/**
 * The predictor of each type and mode of GPU from models as text; the capacity model for kinds that none of them is of. Throws
 * ModelFormatError.
 */
export function predictorsOf(
  models: readonly string[],
): (gpu: { type: string; mode: DeviceMode }) => SlowdownPredictor {
  const byKind = new Map<string, SlowdownPredictor>();
  for (const text of models) {
    const model = decodeModel(text);
    byKind.set(`${model.gpuType} ${model.mode}`, modelPredictor(model));
  }
  return ({ type, mode }) => byKind.get(`${type} ${mode}`) ?? capacityModel;
}
