// Figures of a run with a GPU for its record.
import type { TrainingProgress } from '@gpuwhisk/common/training';
import type { CallOutcome } from '../containers/container-factory.js';
import type { GpuRuns, GpuUser } from '../gpu-agent/gpu-runs.js';
import type { ActivationTimes } from './activation-record.js';

/** Figures of a run, as in ActivationTimes. */
export type RunFigures = Pick<ActivationTimes, 'batch' | 'training' | 'inputSize' | 'besideMs'>;

/**
 * Begins to measure a run, right before its call. The returned function gives its figures after the call, of `size` requests
 * that ran together, and with the progress of a training job: without a GPU only these.
 */
export function measureRun(
  gpu: Pick<GpuRuns, 'besideMs'> | undefined,
  user: GpuUser | undefined,
): (outcome: CallOutcome, size: number, training?: TrainingProgress) => RunFigures {
  const besideMs = (): number | undefined => user && gpu?.besideMs(user.activationId);
  const before = besideMs();
  return (outcome, size, training) => {
    const now = besideMs();
    const inputSize = user !== undefined && outcome.type === 'result' ? outcome.inputSize : undefined;
    return {
      ...(size > 1 && { batch: size }),
      ...(before !== undefined && now !== undefined && { besideMs: Math.max(0, now - before) }),
      ...(inputSize !== undefined && { inputSize }),
      ...(training !== undefined && { training }),
    };
  };
}
