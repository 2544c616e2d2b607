import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { CombinedMessage, CompletionMessage } from '@gpuwhisk/common/messages';

/** The id of the activation whose slot is free. */
export function completedActivation(message: CompletionMessage | CombinedMessage): string {
  if (!('response' in message)) return message.activationId;
  return typeof message.response === 'string' ? message.response : message.response.activationId;
}

/** Whether a run on a GPU is known to have ended well. */
export function hasSucceeded(message: CompletionMessage | CombinedMessage): boolean {
  if (message.isSystemError) return false;
  if (!('response' in message)) return message.isFailed !== true;
  return typeof message.response !== 'string' && message.response.response.statusCode === ActivationStatus.success;
}
