import { isRecordKept, recordedCall } from '@gpuwhisk/common/activations/record-policy';
import { activationDocument, ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { JsonObject } from '@gpuwhisk/common/json';
import { completedTopic, unplacedTopic } from '@gpuwhisk/common/messages';
import type { AcknowledgementMessage, ActivationMessage, UnplacedMessage } from '@gpuwhisk/common/messages';
import type { InvokerContext } from './invoker-context.js';

/** False if the bus does not take it. */
function acknowledge(
  context: InvokerContext,
  message: ActivationMessage,
  acknowledgement: AcknowledgementMessage,
): boolean {
  const topic = completedTopic(message.rootControllerIndex.asString);
  try {
    context.bus.send(topic, acknowledgement as unknown as JsonObject);
    return true;
  } catch (error) {
    context.logger.error({ topic, error: String(error) }, 'an acknowledgement could not be sent');
    return false;
  }
}

/** Tells a waiting controller the result at once; the slot is still in use. */
export function acknowledgeResult(context: InvokerContext, message: ActivationMessage, record: WhiskActivation): void {
  acknowledge(context, message, { transid: message.transid, response: record });
}

/**
 * Hands the complete record to the store, if it is to be kept, and frees the slot at the controller, in one message with
 * the result where a caller waits for that (`answer`, without logs). `stored` is called once it is durable, or at once.
 */
export function complete(
  context: InvokerContext,
  message: ActivationMessage,
  record: WhiskActivation,
  answer: WhiskActivation | undefined,
  stored: () => void,
): void {
  const kept = isRecordKept(context.recordLevels, recordedCall(message), record.response.statusCode);
  if (kept) context.records.add(activationDocument(record, context.clock.now()), stored);
  acknowledgeCompletion(context, message, record, answer);
  if (!kept) stored();
}

/**
 * Gives an activation that was placed on a GPU and is not run there back to its controller, which decides again. Resolves once
 * that would survive a power loss; rejects if the bus does not take it.
 */
export async function giveBack(context: InvokerContext, unplaced: UnplacedMessage): Promise<void> {
  const message = unplaced.activation;
  const topic = unplacedTopic(message.rootControllerIndex.asString);
  await context.bus.send(topic, unplaced as unknown as JsonObject).synced();
}

/** Ends an activation that is not run, and leaves no record of it. */
export function refuse(context: InvokerContext, message: ActivationMessage, record: WhiskActivation): void {
  acknowledgeCompletion(context, message, record, message.blocking ? record : undefined);
}

function acknowledgeCompletion(
  context: InvokerContext,
  message: ActivationMessage,
  record: WhiskActivation,
  answer: WhiskActivation | undefined,
): void {
  if (message.sample === undefined && message.launch === undefined)
    context.userEvents?.activation(record, message.user);
  const { transid, activationId } = message;
  const { statusCode } = record.response;
  const end = { transid, isSystemError: statusCode === ActivationStatus.whiskError, instance: context.instance };
  if (answer !== undefined && acknowledge(context, message, { ...end, response: answer })) return;
  // Also of a result that is too large for the bus: the slot is free.
  acknowledge(context, message, {
    ...{ ...end, activationId },
    ...(message.gpu !== undefined && statusCode !== ActivationStatus.success && { isFailed: true }),
  });
}
