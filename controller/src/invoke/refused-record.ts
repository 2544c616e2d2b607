import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import type { ActivationMessage } from '@gpuwhisk/common/messages';

/** The record of an activation that was accepted and that no GPU took. */
export function refusedRecord(message: ActivationMessage, nowMs: number, error: string): WhiskActivation {
  const { action, activationId, cause, transid, user } = message;
  const annotations: Parameter[] = [
    { key: 'path', value: `${action.path}/${action.name}` },
    { key: 'kind', value: 'unknown' },
    { key: 'timeout', value: false },
  ];
  if (cause !== undefined) annotations.push({ key: 'causedBy', value: 'sequence' });
  if (action.binding !== undefined) annotations.push({ key: 'binding', value: action.binding });
  annotations.push({ key: 'waitTime', value: Math.max(0, nowMs - transid[1]) });
  return {
    namespace: user.namespace.name,
    name: action.name,
    version: action.version ?? '0.0.1',
    subject: user.subject,
    activationId,
    start: nowMs,
    end: nowMs,
    duration: 0,
    ...(cause !== undefined && { cause }),
    response: { statusCode: ActivationStatus.whiskError, result: { error } },
    logs: [],
    publish: false,
    annotations,
  };
}
