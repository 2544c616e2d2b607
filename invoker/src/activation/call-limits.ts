import { resultBoundsFor } from '@gpuwhisk/common/entities/limits';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { CallLimits } from '../containers/container-factory.js';
import type { InvokerContext } from './invoker-context.js';
import type { RunnableAction } from './runnable-action.js';

const MiB = 1024 * 1024;

/** The bounds of a call into a container: the action's, and its namespace's on results. */
export function callLimits(
  { resultBounds }: Pick<InvokerContext, 'resultBounds'>,
  { user }: ActivationMessage,
  { limits }: RunnableAction,
): CallLimits {
  const results = resultBoundsFor(resultBounds, user.limits);
  return { timeoutMs: limits.timeout, logLimitBytes: limits.logs * MiB, ...results, forNamespace: user.namespace.name };
}

/** Those of a run whose code is loaded: one that only measures keeps nobody waiting for long. */
export function runLimits(limits: CallLimits, { sample }: ActivationMessage): CallLimits {
  return sample === undefined ? limits : { ...limits, timeoutMs: Math.min(limits.timeoutMs, sample.maxMs) };
}

/** When a run that begins now has to end, epoch ms. */
export function deadlineMs({ clock }: Pick<InvokerContext, 'clock'>, { limits }: RunnableAction): number {
  return clock.now() + limits.timeout;
}
