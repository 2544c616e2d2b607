import { defaultBestEffortMs } from '@gpuwhisk/gpu/order/earliest-deadline';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { IdleInstance } from '@gpuwhisk/gpu/view/view';
import { makePolicy } from '@gpuwhisk/gpu/policies/make-policy';
import { capacityModel } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { metricsOf, type ReplayMetrics } from '../replay/metrics.js';
import { alike, replay, type ReplayJob } from '@gpuwhisk/gpu/simulate/replay';
import type { GpuTruth } from '@gpuwhisk/gpu/simulate/replay';

/** What a prediction is told of the platform before a trace begins. */
export interface Beginning {
  type: string;
  /** That functions may have of each GPU, MiB. */
  memoryMiB: number;
  /** By GPU: the processes that idle there. */
  idle: readonly (readonly IdleInstance[])[];
  /** Start of a task in such a process, ms. */
  warmMs: number;
}

/** What the simulator says of a trace: the platform's policy on GPUs that do what `truth` says. */
export function predict(
  jobs: readonly ReplayJob[],
  truth: GpuTruth,
  policyName: string,
  { type, memoryMiB, idle, warmMs }: Beginning,
): ReplayMetrics {
  const policy = makePolicy(policyName, {
    predictorOf: () => capacityModel,
    admission: 'best-effort',
    random: seededRandom(1),
  });
  const gpus = idle.length;
  const cluster = { gpus, type, mode: 'mps', memoryMiB, perNode: gpus, kept: { warmMs, initial: idle } } as const;
  const run = replay(jobs, alike(cluster), truth, policy, seededRandom(1));
  return metricsOf(run, jobs.filter(({ task }) => task.sloMs !== undefined).length, defaultBestEffortMs);
}
