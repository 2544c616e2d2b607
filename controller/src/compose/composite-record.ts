import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import type { ActivationResponse, WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { isConductor } from './composite.js';
import type { ComponentTally } from './component-tally.js';

/**
 * The record of a sequence or composition. `action` is undefined where it could not be read; `startMs` and `endMs`
 * are epoch ms.
 */
export function compositeRecord(
  message: ActivationMessage,
  action: WhiskAction | undefined,
  tally: ComponentTally,
  startMs: number,
  endMs: number,
  response: ActivationResponse,
): WhiskActivation {
  const { action: reference, cause, transid, user } = message;
  const annotations: Parameter[] = [
    { key: 'topmost', value: cause === undefined },
    { key: 'path', value: `${reference.path}/${reference.name}` },
    { key: 'kind', value: 'sequence' },
  ];
  if (action !== undefined && isConductor(action)) annotations.push({ key: 'conductor', value: true });
  if (cause !== undefined) annotations.push({ key: 'causedBy', value: 'sequence' });
  annotations.push({ key: 'waitTime', value: Math.max(0, startMs - transid[1]) });
  if (reference.binding !== undefined) annotations.push({ key: 'binding', value: reference.binding });
  if (action !== undefined && tally.memoryMiB !== undefined) {
    const { timeout, logs } = action.limits;
    annotations.push({ key: 'limits', value: { timeout, memory: tally.memoryMiB, logs, concurrency: 1 } });
  }
  return {
    namespace: user.namespace.name,
    name: reference.name,
    version: reference.version ?? '0.0.1',
    subject: user.subject,
    activationId: message.activationId,
    start: startMs,
    end: endMs,
    duration: tally.durationMs,
    ...(cause !== undefined && { cause }),
    response,
    logs: [...tally.ids],
    publish: false,
    annotations,
  };
}
