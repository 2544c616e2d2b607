// The message that runs an activation, and the record of an activation that no process runs.
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { ActionReference, ActivationMessage, TransactionIdJson } from '@gpuwhisk/common/messages';
import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import type { InvokeRequest } from './invoke-service.js';

/** The fields of a message that carry an action's arguments. */
type Arguments = Pick<ActivationMessage, 'content' | 'initArgs' | 'lockedArgs' | 'lockedIn'>;

/** The arguments of a payload alone. */
export function bareArguments(payload: InvokeRequest['payload']): Arguments {
  return { content: payload, initArgs: [], lockedArgs: {} };
}

/** The arguments of an action's parameters, overridden by the payload. */
export function mergedArguments({ parameters }: WhiskAction, payload: InvokeRequest['payload']): Arguments {
  // An array cannot be merged with parameters and is passed unchanged.
  if (parameters.length === 0 || Array.isArray(payload)) return bareArguments(payload);
  const content: JsonObject = {};
  const initArgs: string[] = [];
  const lockedArgs: JsonObject = {};
  let lockedIn: JsonObject | undefined;
  for (const { key, value, init, encryption, lockedIn: documentId } of parameters) {
    content[key] = value;
    if (init === true) initArgs.push(key);
    if (encryption === undefined || Object.hasOwn(payload, key)) continue;
    lockedArgs[key] = encryption;
    if (documentId !== undefined) (lockedIn ??= {})[key] = documentId;
  }
  Object.assign(content, payload);
  return { content, initArgs, lockedArgs, ...(lockedIn && { lockedIn }) };
}

/** The message that runs an activation; `instance` is the controller's number. */
export function activationMessage(
  request: InvokeRequest,
  { content, initArgs, lockedArgs, lockedIn }: Arguments,
  { activationId, instance, nowMs }: { activationId: string; instance: number; nowMs: number },
): ActivationMessage {
  const { action, binding, identity, blocking, cause, trace } = request;
  const reference: ActionReference = { path: action.namespace, name: action.name, version: action.version };
  if (binding !== undefined) reference.binding = binding;
  const message: ActivationMessage = {
    transid: transactionIdJson(request, nowMs),
    action: reference,
    revision: action.revision,
    user: identity,
    activationId,
    rootControllerIndex: { asString: String(instance), instanceType: 'controller' },
    blocking,
    content,
    initArgs,
    lockedArgs,
  };
  if (lockedIn !== undefined) message.lockedIn = lockedIn;
  if (cause !== undefined) message.cause = cause;
  if (trace !== undefined) message.traceContext = { ...trace };
  return message;
}

/** The transaction id of a request in the format of messages. */
function transactionIdJson({ transactionId, extraLogging }: InvokeRequest, nowMs: number): TransactionIdJson {
  return extraLogging === true ? [transactionId, nowMs, true] : [transactionId, nowMs];
}

/** The record of an activation that was accepted but got no GPU. */
export function refusedRecord(message: ActivationMessage, nowMs: number, error: string): WhiskActivation {
  const { action, activationId, cause, transid, user } = message;
  const annotations: Parameter[] = [
    { key: 'path', value: `${action.path}/${action.name}` },
    { key: 'kind', value: 'unknown' },
    { key: 'timeout', value: false },
    { key: 'start', value: 'none' },
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
