import type { GpuKind } from '@gpuwhisk/common/gpu';
import { asMember, type DegradationModel } from '@gpuwhisk/gpu/predict/degradation';
import type { SmoreDegradation } from '@gpuwhisk/gpu/predict/smore-degradation';

/** Degradations as SMORE's predictor says them for one type of GPU in one mode. */
export function bySmore(predictor: Pick<SmoreDegradation, 'term'>, key: GpuKind): DegradationModel {
  return {
    term: (victim, neighbour, neighbours) =>
      predictor.term(key, asMember(victim, 0), asMember(neighbour, 1), neighbours),
  };
}
