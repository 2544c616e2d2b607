// Activations of versions whose faults end others' runs are placed as if their annotation had isolation `exclusive`.
import type { GpuNeed } from '@gpuwhisk/common/gpu';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { FunctionFaults, RunsAlone } from '../learning/function-faults.js';
import type { WaitingActivation } from './gpu-queue.js';

/** What is known of versions that run alone. */
export type Faults = Pick<FunctionFaults, 'alone'>;

/** Why the version of an activation must run alone; undefined: it need not. */
export function aloneOf({ action }: Pick<ActivationMessage, 'action'>, faults: Faults): RunsAlone | undefined {
  return faults.alone(`/${action.path}/${action.name}`, action.version ?? '');
}

/** The need of an activation: that of one whose version must run alone is exclusive. */
export function needApart(message: Pick<ActivationMessage, 'action'>, need: GpuNeed, faults: Faults): GpuNeed {
  return aloneOf(message, faults) === undefined ? need : { ...need, isolation: 'exclusive' };
}

/** Makes a waiting activation exclusive if its version must run alone, and notes the reason for its decision. */
export function keepApart(waiting: WaitingActivation, faults: Faults): void {
  const { message, need, request } = waiting;
  const alone = aloneOf(message, faults);
  if (alone === undefined) return;
  waiting.apart = aloneText(alone);
  if (request.isolation === 'exclusive') return;
  const isolation = 'exclusive' as const;
  waiting.need = { ...need, isolation };
  waiting.request = { ...request, isolation };
  waiting.message = { ...message, gpuNeed: waiting.need };
}

/** Why a version runs alone, in words. */
export function aloneText({ state, until }: RunsAlone): string {
  const end = `until ${new Date(until).toISOString().slice(0, 16)}Z`;
  return state === 'faulting'
    ? `alone ${end}: a fault of this version ended the runs of all functions on its MPS server`
    : `alone ${end} or until five runs have succeeded: it was one of several that a fault on their MPS server ended`;
}
