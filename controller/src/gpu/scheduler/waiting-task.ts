// The task that a policy sees of an activation.
import type { GpuKind, GpuNeed } from '@gpuwhisk/common/gpu';
import type { AloneTimes } from '@gpuwhisk/common/gpu-observations';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { shareOf } from '@gpuwhisk/gpu/view/shares';
import type { FunctionProfiles } from '@gpuwhisk/gpu/stages/profile/function-profiles';
import { recordOf, workloadOf } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { Task } from '@gpuwhisk/gpu/view/view';
import { requestOf } from './gpu-queue.js';
import type { WaitingActivation } from './gpu-queue.js';

/** An activation from which a task is made. */
export interface Asked extends Pick<WaitingActivation, 'need' | 'request' | 'sloMs'> {
  activationId: string;
  version: string;
}

/** What a message asks for. */
export function askedOf(message: ActivationMessage, need: GpuNeed, request = requestOf(message, need)): Asked {
  const { activationId, action } = message;
  return { activationId, version: action.version ?? '', need, request, sloMs: need.sloMs };
}

/**
 * The task of an activation that arrived at `arrivedAt` (epoch ms), with what `profiles` know of its function.
 * `givesProfiled`: instances get the request and limit of their functions' profiles.
 */
export function taskOf(
  { activationId, version, need, request, sloMs }: Asked,
  arrivedAt: number,
  profiles: Pick<FunctionProfiles, 'of'>,
  givesProfiled: boolean,
): Task {
  const { inputBytes } = need;
  const identity = {
    ...{ function: request.action, version, batch: need.batch, arrivedAt },
    ...(inputBytes !== undefined && { inputSize: { value: inputBytes } }),
  };
  const { featureRecord: measured, ...times } = profiles.of(identity);
  // Requests join a batch's instance only with exactly the same share, as that of a profile is.
  const isAlike = need.batch === 1 || (givesProfiled && times.profiledShares !== undefined);
  const isFixed = need.mpsPercent !== undefined || need.smLimit !== undefined || !isAlike;
  const featureRecord = recordOf(measured, need.features);
  const features = workloadOf(featureRecord);
  return {
    id: activationId,
    ...identity,
    namespace: request.namespace,
    gpus: need.gpus,
    memoryMiB: need.memoryMiB,
    class: need.class,
    ...(need.mustNotStop && { mustNotStop: true as const }),
    isolation: request.isolation,
    ...(sloMs !== undefined && { sloMs }),
    ...(isFixed && { share: shareOf(need).smLimit }),
    ...(need.maxShareClass !== undefined && { maxShare: need.maxShareClass / 100 }),
    ...times,
    ...(features !== undefined && { features }),
    ...(featureRecord !== undefined && { featureRecord }),
  };
}

/** The times alone of a task's function that a placement tells its agent; undefined: none is measured on this kind of GPU. */
export function aloneTimesOf(
  task: Task,
  gpu: GpuKind,
  profiles: Pick<FunctionProfiles, 'aloneMs' | 'aloneByReported'>,
): AloneTimes | undefined {
  const [ms, reported] = [profiles.aloneMs(task, gpu), profiles.aloneByReported(task, gpu)];
  if (ms === undefined && reported.length === 0) return undefined;
  return { ...(ms !== undefined && { ms }), ...(reported.length > 0 && { reported }) };
}

/** A run with the size of its input as the function has reported it, in place of the bytes of its parameters. */
export function withReportedSize<Run extends { task: Task }>(run: Run, value: number): Run {
  return { ...run, task: { ...run.task, inputSize: { value, isReported: true } } };
}
